/** Saves a text as a file of the browser, named for what it is of. */
export function download(name: string, extension: 'yaml' | 'csv' | 'json', text: string): void {
  const url = URL.createObjectURL(new Blob([text]))
  const link = document.createElement('a')
  link.href = url
  link.download = `${name.toLowerCase().replaceAll(/[^\p{L}\p{M}\p{N}]+/gu, '-')}.${extension}`
  link.click()
  URL.revokeObjectURL(url)
}
