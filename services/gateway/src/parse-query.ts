/**
 * The query of a request's target, each name with all its values, in order. Strict where the usual parsers guess.
 * @throws URIError when a name or a value is not percent-encoded UTF-8.
 */
export function parseQuery(target: string): Map<string, string[]> {
  const values = new Map<string, string[]>()
  const start = target.indexOf('?')
  if (start === -1) return values
  for (const pair of target.slice(start + 1).split('&')) {
    if (pair === '') continue
    const equals = pair.indexOf('=')
    const name = decode(equals === -1 ? pair : pair.slice(0, equals))
    const value = equals === -1 ? '' : decode(pair.slice(equals + 1))
    const earlier = values.get(name)
    if (earlier) earlier.push(value)
    else values.set(name, [value])
  }
  return values
}

function decode(text: string): string {
  return decodeURIComponent(text.replaceAll('+', ' '))
}
