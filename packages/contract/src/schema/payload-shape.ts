import { PAYLOAD_MAX_DEPTH } from '../limits.ts'

/**
 * What an example says about a value (contract README, "Webhook sources"). The types are alternatives: a value may be one
 * of `scalars`, an object like `object`, or a list of items like `list`. A shape without types, or with null alone, allows
 * any value.
 */
export interface PayloadShape {
  readonly scalars: ReadonlySet<ScalarType>
  readonly object: ObjectShape | null
  /** The shape of the list's items. */
  readonly list: PayloadShape | null
}

/** The fields of an object. Without fields, it allows any field. */
export interface ObjectShape {
  readonly fields: ReadonlyMap<string, PayloadShape>
  readonly required: ReadonlySet<string>
}

/** `integer` allows any number: an example price of 10 does not say that 12.50 is wrong. It becomes a hint in the schema. */
export type ScalarType = 'string' | 'integer' | 'number' | 'boolean' | 'null'

const ANY_VALUE: PayloadShape = { scalars: new Set(), object: null, list: null }

/** Derives the shape of every payload from the example. */
export function inferShape(example: Record<string, unknown>): PayloadShape {
  return inferValueShape(example, 1)
}

/** Reports whether the shape allows any value. */
export function allowsAnyValue(shape: PayloadShape): boolean {
  return shape.object === null && shape.list === null && [...shape.scalars].every((scalar) => scalar === 'null')
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

/** Parts that `findExampleErrors` refuses (too deep, `__proto__`) allow any value here, which bounds the recursion. */
function inferValueShape(value: unknown, depth: number): PayloadShape {
  if (typeof value !== 'object' || value === null) return { ...ANY_VALUE, scalars: new Set([scalarTypeOf(value)]) }
  if (depth > PAYLOAD_MAX_DEPTH) return ANY_VALUE
  if (Array.isArray(value)) {
    const items = value.map((item) => inferValueShape(item, depth + 1))
    return { ...ANY_VALUE, list: items.length === 0 ? ANY_VALUE : items.reduce(mergeShapes) }
  }
  const entries = Object.entries(value).filter(([name]) => name !== '__proto__')
  const fields = new Map(entries.map(([name, field]) => [name, inferValueShape(field, depth + 1)]))
  return { ...ANY_VALUE, object: { fields, required: new Set(fields.keys()) } }
}

function scalarTypeOf(value: unknown): ScalarType {
  if (value === null) return 'null'
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number'
  return typeof value === 'boolean' ? 'boolean' : 'string'
}

function mergeShapes(a: PayloadShape, b: PayloadShape): PayloadShape {
  const scalars = new Set([...a.scalars, ...b.scalars])
  if (scalars.has('number')) scalars.delete('integer')
  return {
    scalars,
    object: a.object && b.object ? mergeObjects(a.object, b.object) : (a.object ?? b.object),
    list: a.list && b.list ? mergeShapes(a.list, b.list) : (a.list ?? b.list),
  }
}

function mergeObjects(a: ObjectShape, b: ObjectShape): ObjectShape {
  const fields = new Map(a.fields)
  for (const [name, shape] of b.fields) {
    const known = fields.get(name)
    fields.set(name, known ? mergeShapes(known, shape) : shape)
  }
  return { fields, required: new Set([...a.required].filter((name) => b.required.has(name))) }
}
