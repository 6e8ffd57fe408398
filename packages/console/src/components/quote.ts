/** The beginning of a text, on one line in quotation marks; empty if there is none. */
export function quote(text: string | null | undefined, maxLength = 200): string {
  const line = (text ?? '').replaceAll(/[\s\p{Cc}]+/gu, ' ').trim()
  if (line === '') return ''
  return `“${line.length > maxLength ? `${line.slice(0, maxLength).toWellFormed()}…` : line}”`
}
