import { PAYLOAD_MAX_DEPTH } from '../limits.ts'

/**
 * What an example says about a value (contract README, "Webhook sources"). The types are alternatives: a value may be
 * one of `scalars`, an object like `object`, or a list of items like `list`. A shape without types, or with null alone,
 * allows any value.
 */
export interface PayloadShape {
  readonly scalars: ReadonlySet<ScalarType>
  readonly object: ObjectShape | null
  /** The shape of the list's items. */
  readonly list: PayloadShape | null
  /**
   * Present if every text of the example here is an ISO 8601 date or time. A hint for those who fill in texts, not a
   * type.
   */
  readonly isDate?: true
}

/** A date or time of ISO 8601, such as `2026-01-31` or `2026-01-31T09:00:00Z`. */
export const ISO_DATE_TIME = /^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?$/

/** The fields of an object. Without fields, it allows any field. */
export interface ObjectShape {
  readonly fields: ReadonlyMap<string, PayloadShape>
  readonly required: ReadonlySet<string>
}

/**
 * `integer` allows any number: an example price of 10 does not say that 12.50 is wrong. It becomes a hint in the
 * schema.
 */
export type ScalarType = 'string' | 'integer' | 'number' | 'boolean' | 'null'

/** The shapes of examples that are in memory: a run needs one several times, and many runs share an example. */
const shapes = new WeakMap<Record<string, unknown>, PayloadShape>()

/**
 * Derives the shape of every payload from the example, in time proportional to the example's size; once for an object,
 * which may not change afterwards.
 */
export function inferShape(example: Record<string, unknown>): PayloadShape {
  let shape = shapes.get(example)
  if (!shape) {
    const draft = emptyDraft()
    addValue(draft, example, 1)
    shapes.set(example, (shape = toShape(draft)))
  }
  return shape
}

/** Reports whether the shape allows any value. */
export function allowsAnyValue(shape: PayloadShape): boolean {
  if (shape.object !== null || shape.list !== null) return false
  return shape.scalars.size === 0 || (shape.scalars.size === 1 && shape.scalars.has('null'))
}

/** Reports whether the object allows any field. */
export function allowsAnyField(object: ObjectShape): boolean {
  return object.fields.size === 0
}

/** Lists the JSON types that the shape allows. */
export function typesOf(shape: PayloadShape): (ScalarType | 'object' | 'array')[] {
  return [...(shape.object ? (['object'] as const) : []), ...(shape.list ? (['array'] as const) : []), ...shape.scalars]
}

/** Reports whether the value is a JSON object. */
export function isJsonObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A shape under construction: each value of the example at this position is added to it in place. */
interface ShapeDraft {
  readonly scalars: Set<ScalarType>
  object: ObjectDraft | null
  list: ShapeDraft | null
  isDate?: boolean
}

interface ObjectDraft {
  /** The number of objects added. A field that all of them have is required. */
  count: number
  readonly fields: Map<string, { count: number; readonly draft: ShapeDraft }>
}

function emptyDraft(): ShapeDraft {
  return { scalars: new Set(), object: null, list: null }
}

/** Parts that `findExampleErrors` refuses (too deep, `__proto__`) allow any value here, which bounds the recursion. */
function addValue(draft: ShapeDraft, value: unknown, depth: number): void {
  if (typeof value === 'string') draft.isDate = draft.isDate !== false && ISO_DATE_TIME.test(value)
  if (typeof value !== 'object' || value === null) return addScalar(draft.scalars, value)
  if (depth > PAYLOAD_MAX_DEPTH) return
  if (Array.isArray(value)) {
    draft.list ??= emptyDraft()
    for (const item of value) addValue(draft.list, item, depth + 1)
    return
  }
  draft.object ??= { count: 0, fields: new Map() }
  draft.object.count += 1
  for (const [name, item] of Object.entries(value)) {
    if (name === '__proto__') continue
    let field = draft.object.fields.get(name)
    if (!field) draft.object.fields.set(name, (field = { count: 0, draft: emptyDraft() }))
    field.count += 1
    addValue(field.draft, item, depth + 1)
  }
}

function addScalar(scalars: Set<ScalarType>, value: unknown): void {
  const type = scalarTypeOf(value)
  if (type === 'number') scalars.delete('integer')
  if (type !== 'integer' || !scalars.has('number')) scalars.add(type)
}

function scalarTypeOf(value: unknown): ScalarType {
  if (value === null) return 'null'
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number'
  return typeof value === 'boolean' ? 'boolean' : 'string'
}

function toShape({ scalars, object, list, isDate }: ShapeDraft): PayloadShape {
  return { scalars, object: object && toObjectShape(object), list: list && toShape(list), ...(isDate && { isDate }) }
}

function toObjectShape({ count, fields }: ObjectDraft): ObjectShape {
  const required = new Set<string>()
  for (const [name, field] of fields) if (field.count === count) required.add(name)
  return { fields: new Map(Array.from(fields, ([name, { draft }]) => [name, toShape(draft)])), required }
}
