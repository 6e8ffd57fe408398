/** Returns the items of a comma-separated setting, without surrounding white space and without empty items. */
export function splitList(text: string): string[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
}
