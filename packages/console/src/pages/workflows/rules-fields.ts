const MAX_FIELDS = 30

/** The paths of the values that a text names: of JSON, of the first item of a list, or of lines `name: value`. */
export function fieldsOf(text: string): string[] {
  try {
    const value: unknown = JSON.parse(text)
    if (Array.isArray(value)) return pathsOf(value[0], 'item').slice(0, MAX_FIELDS)
    if (typeof value === 'object' && value !== null) return pathsOf(value, 'fields').slice(0, MAX_FIELDS)
  } catch {
    // Lines.
  }
  const names = text.split('\n').flatMap((line) => /^\s*([^:：]{1,60}?)\s*[:：]\s*\S/.exec(line)?.slice(1) ?? [])
  return [...new Set(names)].slice(0, MAX_FIELDS).map((name) => `fields${memberOf(name)}`)
}

/** After a dot, CEL takes these words for something else. */
const memberOf = (name: string) =>
  /^(?!(?:in|true|false|null)$)[A-Za-z_]\w*$/.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`

function pathsOf(value: unknown, path: string): string[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [path]
  return Object.entries(value).flatMap(([name, inner]) => pathsOf(inner, path + memberOf(name)))
}
