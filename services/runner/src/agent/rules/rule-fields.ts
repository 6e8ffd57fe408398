import { canonicalNumber } from '@workflow-service/contract/find-inexact-number'
import type { JsonValue } from '@workflow-service/rules'
import { type ContextValue, isExactNumber, NumberText } from '@workflow-service/rules/convert-value'
import { foldName } from '../builtin/fold-name.ts'
import type { ReadContext } from '../builtin/read-context.ts'
import { isContextObject } from '../context-values.ts'

/** Finds names in any spelling: `order_id`, `orderId` and `Order ID` are the same. The exact name wins. */
class FieldMap extends Map<string, unknown> {
  readonly #exact: ReadonlyMap<string, unknown[]>
  readonly #folded: ReadonlyMap<string, unknown[]>

  /** Entries of one name with different values are a contradiction. */
  constructor(entries: readonly (readonly [string, unknown])[]) {
    super(entries)
    this.#exact = groupValues(entries, (name) => name)
    this.#folded = groupValues(entries, foldName)
  }

  override get(name: unknown): unknown {
    // CEL passes the key of `fields[0]` as it is.
    if (typeof name !== 'string') return undefined
    const values = this.#exact.get(name) ?? this.#folded.get(foldName(name)) ?? []
    if (values.length > 1 && new Set(values.map((value) => JSON.stringify(toPlain(value)))).size > 1) {
      throw new Error(`the context has different values for ${JSON.stringify(name)}`)
    }
    // Equal ones are compared once: a loop asks for a name thousands of times, which counts as little work.
    values.splice(1)
    return values[0]
  }
}

function groupValues(
  entries: readonly (readonly [string, unknown])[],
  toKey: (name: string) => string,
): Map<string, unknown[]> {
  const groups = Map.groupBy(entries, ([name]) => toKey(name))
  return new Map(Array.from(groups, ([key, group]) => [key, group.map(([, value]) => value)]))
}

/**
 * `fields` of a context that cannot be read. It has no value, not even for `has(fields.cancelled)`: it reports that it
 * was asked.
 */
class UnreadableFields extends Map<string, unknown> {
  readonly #report: () => void

  constructor(report: () => void) {
    super()
    this.#report = report
  }

  override get(): undefined {
    this.#report()
  }

  override get size(): number {
    this.#report()
    return 0
  }

  override [Symbol.iterator](): MapIterator<[string, unknown]> {
    this.#report()
    return super[Symbol.iterator]()
  }
}

/** `items` of a context that begins like JSON and cannot be read: a list that breaks off is not an empty one. */
function unreadableItems(report: () => void): unknown[] {
  return new Proxy<unknown[]>([], {
    get(target, key) {
      report()
      return Reflect.get(target, key) as unknown
    },
  })
}

/** The values that the context names, and the items of a list in JSON, for the expressions of rules. */
export function toRuleFields(
  context: ReadContext | { readonly isLikeJson: boolean },
  reportUnreadable: () => void,
): { fields: ReadonlyMap<string, unknown>; items: unknown[] } {
  if ('isLikeJson' in context) {
    const items = context.isLikeJson ? unreadableItems(reportUnreadable) : []
    return { fields: new UnreadableFields(reportUnreadable), items }
  }
  if ('lines' in context) {
    const lines = [...context.lines.values()]
    const entries = lines.flatMap(({ name, values }) => values.map((value) => [name, value] as const))
    // A name without a value names nothing.
    return { fields: new FieldMap(entries.filter(([, value]) => value !== '')), items: [] }
  }
  const { json } = context
  return Array.isArray(json)
    ? { fields: new FieldMap([]), items: json.map(toRuleValue) }
    : { fields: toMap(json), items: [] }
}

function toMap(object: { readonly [name: string]: ContextValue }): FieldMap {
  return new FieldMap(Object.entries(object).map(([name, value]) => [name, toRuleValue(value)]))
}

function toRuleValue(value: ContextValue): unknown {
  if (value instanceof NumberText) {
    // As text, so that no digit is lost; number(…) refuses it.
    const { source } = value
    const number = Number(source)
    // Some programs write 199.9 as 199.90000000000001.
    const [digits = ''] = source.split(/e/iu)
    const count = digits.replace(/^-?0*\.?0*/u, '').replace('.', '').length
    const isRounded =
      digits.includes('.') && count <= 17 && (Math.abs(number) < 2 ** 53 || hasDigits(number, source, count))
    return isRounded || isExactNumber(source) ? number : source
  }
  if (Array.isArray(value)) return value.map(toRuleValue)
  return isContextObject(value) ? toMap(value) : value
}

/** Whether a large number, written with `count` digits, is the source: an id with another digit is another one. */
function hasDigits(number: number, source: string, count: number): boolean {
  return canonicalNumber(number.toPrecision(count)) === canonicalNumber(source)
}

/** The value without maps, to compare it. */
function toPlain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toPlain)
  return value instanceof FieldMap ? [...value].map(([name, item]) => [name, toPlain(item)]) : value
}

/** The value as the built-in agent reads one from a context. */
export function toContextValue(value: JsonValue): ContextValue {
  if (typeof value === 'number') return new NumberText(String(value))
  if (Array.isArray(value)) return value.map(toContextValue)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, toContextValue(item)]))
}
