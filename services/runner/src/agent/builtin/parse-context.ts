/** A number as it was written, so that `1.10` and numbers with 20 digits stay unchanged in a text field. */
export class NumberText {
  readonly source: string

  constructor(source: string) {
    this.source = source
  }
}

/** The value of a name in the context. */
export type ContextValue = string | boolean | null | NumberText | ContextValue[] | ContextObject
export type ContextObject = { [name: string]: ContextValue }

/** The text before the separator of a line: a name of at most 100 characters, with or without a bullet and quotes. */
const LABEL = /^(?:[-*•]\s+)?["'`*_]{0,2}(?<name>[\p{L}\p{N}][\p{L}\p{M}\p{N} _.\-/()#]{0,99}?)["'`*_]{0,2}$/u

/**
 * Reads the names and values of a context: a JSON object, or lines of the form `name: value` or `name = value`, with or
 * without bullets. A line's value may be JSON (`lines: [{"sku": "A"}]`) or in double quotes. The values of a repeated
 * name become a list. Any other text has no names.
 */
export function parseContext(context: string): ContextObject {
  return parseObject(context) ?? parseLines(context)
}

export function isContextObject(value: ContextValue): value is ContextObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof NumberText)
}

function parseObject(text: string): ContextObject | undefined {
  const value = /^\s*\{/.test(text) ? parseJson(text) : undefined
  return value !== undefined && isContextObject(value) ? value : undefined
}

function parseLines(context: string): ContextObject {
  const values = new Map<string, ContextValue[]>()
  for (const line of context.split(/\r\n|[\n\r\u2028\u2029]/u)) {
    // A name contains neither separator, so it ends at the first one. A URL such as https://example.com has no name.
    const separator = line.search(/[:=]/u)
    if (separator === -1 || line.startsWith('//', separator + 1)) continue
    const name = LABEL.exec(line.slice(0, separator).trim())?.groups?.['name']?.trim()
    if (name === undefined) continue
    const value = parseLineValue(line.slice(separator + 1).trim())
    const known = values.get(name)
    if (known) known.push(value)
    else values.set(name, [value])
  }
  return Object.fromEntries([...values].map(([name, all]) => [name, all.length > 1 ? all : (all[0] ?? '')]))
}

function parseLineValue(text: string): ContextValue {
  const isStructured = /^[[{]/.test(text) && /[\]}]$/.test(text)
  const isQuoted = text.length > 1 && text.startsWith('"') && text.endsWith('"')
  return (isStructured || isQuoted ? parseJson(text) : undefined) ?? text
}

function parseJson(text: string): ContextValue | undefined {
  try {
    return JSON.parse(text, keepNumberText) as ContextValue
  } catch {
    // Not JSON, or nested deeper than the stack allows: it is read as plain text.
    return undefined
  }
}

function keepNumberText(this: unknown, _name: string, value: unknown, ...[context]: unknown[]): unknown {
  return typeof value === 'number' ? new NumberText((context as { source: string }).source) : value
}
