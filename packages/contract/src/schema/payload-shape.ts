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

const ISO_DATE_TIME =
  /^(\d{4}-\d\d-\d\d)(?:[T ](?:[01]\d|2[0-3]):[0-5]\d(?::(?:[0-5]\d|60)(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?$/

/**
 * The date of a date or time of ISO 8601, such as `2026-01-31` or `2026-01-31T09:00:00Z`, as it is written there;
 * undefined for another text, and for a day that does not exist.
 */
export function readIsoDate(text: string): string | undefined {
  const date = ISO_DATE_TIME.exec(text)?.[1]
  // 2026-02-30 is read as March 2.
  return date !== undefined && new Date(date).getUTCDate() === Number(date.slice(8)) ? date : undefined
}

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
  if (!shape) shapes.set(example, (shape = shapeOf([example], 1)))
  return shape
}

/**
 * The shape of all values that the example has at one position. Parts that `findExampleErrors` refuses (too deep,
 * `__proto__`) allow any value, which bounds the recursion.
 */
function shapeOf(values: readonly unknown[], depth: number): PayloadShape {
  const scalars = new Set<ScalarType>()
  const objects: Record<string, unknown>[] = []
  const lists: unknown[][] = []
  let isDate: boolean | undefined
  for (const value of values) {
    if (typeof value === 'string') isDate = isDate !== false && readIsoDate(value) !== undefined
    if (typeof value !== 'object' || value === null) scalars.add(scalarTypeOf(value))
    else if (depth > PAYLOAD_MAX_DEPTH) continue
    else if (Array.isArray(value)) lists.push(value)
    else objects.push(value as Record<string, unknown>)
  }
  if (scalars.has('number')) scalars.delete('integer')
  return {
    scalars,
    object: objects.length > 0 ? objectShapeOf(objects, depth) : null,
    list: lists.length > 0 ? shapeOf(lists.flat(), depth + 1) : null,
    ...(isDate && { isDate }),
  }
}

function objectShapeOf(objects: readonly Record<string, unknown>[], depth: number): ObjectShape {
  const valuesOf = new Map<string, unknown[]>()
  for (const object of objects) {
    for (const [name, value] of Object.entries(object)) {
      const values = valuesOf.get(name)
      if (values) values.push(value)
      else if (name !== '__proto__') valuesOf.set(name, [value])
    }
  }
  const fields = new Map<string, PayloadShape>()
  const required = new Set<string>()
  for (const [name, values] of valuesOf) {
    fields.set(name, shapeOf(values, depth + 1))
    if (values.length === objects.length) required.add(name)
  }
  return { fields, required }
}

function scalarTypeOf(value: unknown): ScalarType {
  if (value === null) return 'null'
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number'
  return typeof value === 'boolean' ? 'boolean' : 'string'
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
