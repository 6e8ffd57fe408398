/** A number as it was written, so that `1.10` and numbers with 20 digits stay unchanged in a text field. */
export class NumberText {
  readonly source: string

  constructor(source: string) {
    this.source = source
  }
}

/** The values of a name that occurs more than once: a list for a list, one value if they are equal, else a contradiction. */
export class RepeatedValue {
  readonly values: readonly ContextValue[]

  constructor(values: readonly ContextValue[]) {
    this.values = values
  }
}

/** The value of a name in the context. */
export type ContextValue = string | boolean | null | NumberText | RepeatedValue | ContextValue[] | ContextObject
export type ContextObject = { [name: string]: ContextValue }

/** The names that the reader of lines looks for, as the words of `toWords`, separated by spaces. */
export interface KnownNames {
  /** Whether any field has this name. */
  isField(words: string): boolean
  /** Whether an object or a list of the example has this name. */
  isSection(words: string): boolean
  /** Whether a list of the example has this name. */
  isList(words: string): boolean
  /** Whether a field of the items of a list has this name, and no other field. */
  isItemField(words: string): boolean
  /** The field with the name of an item, for the name of its list: `name` for "Item"; undefined if it has none. */
  itemNameField(words: string): string | undefined
}

/** What a context says. */
export interface ReadContext {
  readonly values: ContextObject
  /** Lists of objects without a name: tables, repeated blocks, a list as the whole context. */
  readonly lists: readonly (readonly ContextObject[])[]
  /** What the text corrects or contradicts outside the values, or cannot be read: "sorry, it is 6". */
  readonly problem: string | undefined
}

export function isContextObject(value: ContextValue): value is ContextObject {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof NumberText) &&
    !(value instanceof RepeatedValue)
  )
}

/** The values of all names together; the values of a name that occurs more than once are a RepeatedValue. */
export function toObject(entries: readonly (readonly [string, ContextValue])[]): ContextObject {
  const values = new Map<string, ContextValue[]>()
  for (const [name, value] of entries) {
    const sameName = values.get(name)
    if (sameName) sameName.push(value)
    else values.set(name, [value])
  }
  return Object.fromEntries(
    [...values].map(([name, all]) => [name, all.length > 1 ? new RepeatedValue(all) : (all[0] ?? null)]),
  )
}

/** Whether the value is a list of objects, and of nothing else. */
export function isObjectList(value: ContextValue): value is ContextObject[] {
  return Array.isArray(value) && value.length > 0 && value.every(isContextObject)
}

/** Parses a JSON object or list; undefined for any other text. */
export function parseStructure(text: string): ContextValue | undefined {
  return /^(?:\{[^]*\}|\[[^]*\])$/.test(text) ? parseJson(text) : undefined
}

export function parseJson(text: string): ContextValue | undefined {
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
