import type { FieldError } from './errors.ts'
import { VERIFICATION_TYPE } from './internal-api.ts'
import { isStorableText } from './text.ts'

/**
 * What an example request body says about every payload modelled on it (contract 2 and 4.5): field names, nesting and
 * value types. One inference feeds both sides, so that what a model is asked for is what the dispatcher lets through:
 *
 * | in the example            | in a payload |
 * | ------------------------- | ------------ |
 * | object                    | an object with exactly these fields: all required, no others |
 * | `{}`                      | an object with any fields: the example says nothing about them |
 * | string, boolean           | the same type |
 * | number with a fraction    | any number |
 * | whole number (`1`, `1.0`) | any number, with the hint in the schema that the example's is whole. JSON has one type of number, and an example price of 10 does not say that 12.50 is wrong: whoever had to send it as a whole number would round it in silence, while a receiver that wants none answers so |
 * | `null`                    | any value, null included: the example says nothing about its type |
 * | list                      | a list of any length, each item like one of the example's |
 * | `[]`, `[null]`            | a list of anything |
 * | list of objects           | a field that only some of them have may be left out; a field's types are those of all of them |
 * | list of mixed types       | each item is one of the types |
 * | list with some nulls      | each item is of the other items' type, or null |
 * | list of lists             | a list of lists whose items are like the items of all of them |
 *
 * Formats are not guessed: a date in the example is a string.
 */
interface Shape {
  readonly scalars: ReadonlySet<Scalar>
  readonly object: ObjectShape | null
  /** The items' shape. */
  readonly list: Shape | null
}

interface ObjectShape {
  readonly fields: ReadonlyMap<string, Shape>
  readonly required: ReadonlySet<string>
}

type Scalar = 'string' | 'integer' | 'number' | 'boolean' | 'null'

/** How deep objects and lists may nest in an example and in a payload; the body itself is level 1. */
export const PAYLOAD_MAX_DEPTH = 32

/** More faults than this help nobody: a payload's check ends there. */
const MAX_FAULTS = 20

/** A JSON Schema (2020-12) as plain data. */
export type JsonSchema = Record<string, unknown>

/**
 * The JSON Schema that a payload for this example follows; `payloadMismatches` checks the same, and beyond it only what
 * a schema cannot say: depth, text that is no Unicode, reserved names.
 */
export function payloadSchemaFor(example: Record<string, unknown>): JsonSchema {
  return toSchema(inferShape(example, 1))
}

/**
 * Where the payload does not follow the example, field by field (`lines.0.price`; `body` is the payload itself), in
 * words that an agent can act upon; at most 20. Empty means that it may be sent.
 */
export function payloadMismatches(example: Record<string, unknown>, payload: unknown): FieldError[] {
  const faults: FieldError[] = []
  if (hasVerificationType(payload)) faults.push(verificationTypeFault('type'))
  compare(inferShape(example, 1), payload, [], faults)
  return faults
}

/** The mismatches as one text: the `reason` of a delivery that is `invalid`. */
export function describeMismatches(mismatches: readonly FieldError[]): string {
  const list = mismatches.map(({ field, message }) => `${field}: ${message}`).join('; ')
  return `The payload does not follow the example request body. ${list}`
}

/**
 * What makes an example request body unusable, whoever saves it: not an object, the verification's `type`, nesting
 * beyond PAYLOAD_MAX_DEPTH, text or names that no database holds, a field named `__proto__`. `field` is where the
 * example stands in the caller's input.
 */
export function exampleErrors(example: unknown, field = 'example_request_body'): FieldError[] {
  if (!isObject(example)) return [{ field, code: 'dict_type', message: 'must be a JSON object' }]
  const faults: FieldError[] = []
  if (hasVerificationType(example)) faults.push(verificationTypeFault('type'))
  checkFreeValue(example, [], faults)
  return faults.map((fault) => ({ ...fault, field: fault.field === 'body' ? field : `${field}.${fault.field}` }))
}

/** Whether a receiver would take the body for a verification request: those are told apart by `type` (contract 6). */
export function hasVerificationType(body: unknown): boolean {
  return isObject(body) && Object.hasOwn(body, 'type') && body['type'] === VERIFICATION_TYPE
}

function verificationTypeFault(field: string): FieldError {
  return {
    field,
    code: 'reserved_value',
    message: `must not be ${VERIFICATION_TYPE}: receivers know verification requests by it`,
  }
}

const ANYTHING: Shape = { scalars: new Set(), object: null, list: null }

/** Null alone says nothing about the type; neither does an empty list about its items. */
function isAnything(shape: Shape): boolean {
  return shape.object === null && shape.list === null && [...shape.scalars].every((scalar) => scalar === 'null')
}

function isFreeObject(object: ObjectShape): boolean {
  return object.fields.size === 0
}

/** Parts of an example that `exampleErrors` would have refused count as anything, so that no recursion is unbounded. */
function inferShape(value: unknown, depth: number): Shape {
  if (typeof value !== 'object' || value === null) return { ...ANYTHING, scalars: new Set([scalarOf(value)]) }
  if (depth > PAYLOAD_MAX_DEPTH) return ANYTHING
  if (Array.isArray(value)) {
    const items = value.map((item) => inferShape(item, depth + 1))
    return { ...ANYTHING, list: items.length === 0 ? ANYTHING : items.reduce(mergeShapes) }
  }
  const names = Object.keys(value).filter((name) => name !== '__proto__')
  const fields = new Map(names.map((name) => [name, inferShape((value as Record<string, unknown>)[name], depth + 1)]))
  return { ...ANYTHING, object: { fields, required: new Set(names) } }
}

function scalarOf(value: unknown): Scalar {
  if (value === null) return 'null'
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number'
  return typeof value === 'boolean' ? 'boolean' : 'string'
}

function mergeShapes(a: Shape, b: Shape): Shape {
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

function toSchema(shape: Shape): JsonSchema {
  if (isAnything(shape)) return {}
  const schemas: JsonSchema[] = []
  if (shape.object) schemas.push(toObjectSchema(shape.object))
  if (shape.list) schemas.push({ type: 'array', items: toSchema(shape.list) })
  if (shape.scalars.size > 0) schemas.push(toScalarSchema([...shape.scalars]))
  const [only, ...others] = schemas
  return only && others.length === 0 ? only : { anyOf: schemas }
}

function toScalarSchema(scalars: readonly Scalar[]): JsonSchema {
  const [only, ...others] = scalars.map((scalar) => (scalar === 'integer' ? 'number' : scalar))
  if (others.length > 0) return { type: [only, ...others] }
  return scalars[0] === 'integer' ? { type: only, description: 'A whole number in the example.' } : { type: only }
}

function toObjectSchema(object: ObjectShape): JsonSchema {
  // Models' APIs refuse an object without `properties` and a list without `items`, even if they say nothing.
  if (isFreeObject(object)) return { type: 'object', properties: {}, additionalProperties: true }
  return {
    type: 'object',
    properties: Object.fromEntries([...object.fields].map(([name, shape]) => [name, toSchema(shape)])),
    required: [...object.required],
    additionalProperties: false,
  }
}

function compare(shape: Shape, value: unknown, path: readonly string[], faults: FieldError[]): void {
  if (faults.length >= MAX_FAULTS) return
  if (isAnything(shape)) return checkFreeValue(value, path, faults)
  if (isObject(value) && shape.object) return compareObject(shape.object, value, path, faults)
  if (Array.isArray(value) && shape.list) {
    if (isTooDeep(path, faults)) return
    for (const [index, item] of value.entries()) compare(shape.list, item, [...path, String(index)], faults)
    return
  }
  if (typeof value === 'object' && value !== null) return addFault(faults, path, ...wrongType(shape, value))
  if (!isScalarOf(shape.scalars, value)) return addFault(faults, path, ...wrongType(shape, value))
  checkScalar(value, path, faults)
}

function compareObject(
  object: ObjectShape,
  value: Record<string, unknown>,
  path: readonly string[],
  faults: FieldError[],
): void {
  if (isFreeObject(object)) return checkFreeValue(value, path, faults)
  if (isTooDeep(path, faults)) return
  for (const [name, shape] of object.fields) {
    if (Object.hasOwn(value, name)) compare(shape, value[name], [...path, name], faults)
    else if (object.required.has(name)) {
      addFault(faults, [...path, name], 'missing', `is required: ${inWords(shape)}`)
    }
  }
  const names = [...object.fields.keys()].map((name) => JSON.stringify(name)).join(', ')
  for (const name of Object.keys(value)) {
    if (object.fields.has(name)) continue
    addFault(faults, [...path, name], 'extra_forbidden', `is not in the example; the fields here are ${names}`)
  }
}

/** What holds for every value, where the example says nothing more. */
function checkFreeValue(value: unknown, path: readonly string[], faults: FieldError[]): void {
  if (faults.length >= MAX_FAULTS) return
  if (typeof value !== 'object' || value === null) return checkScalar(value, path, faults)
  if (isTooDeep(path, faults)) return
  const isList = Array.isArray(value)
  for (const [name, item] of Object.entries(value)) {
    const itemPath = [...path, name]
    if (!isList && name === '__proto__') {
      addFault(faults, itemPath, 'reserved_name', 'must have another name: many JSON readers drop __proto__')
    } else if (!isStorableText(name)) {
      addFault(faults, itemPath, 'string_unicode', 'must have a name without NUL and lone surrogates')
    } else {
      checkFreeValue(item, itemPath, faults)
    }
  }
}

function checkScalar(value: unknown, path: readonly string[], faults: FieldError[]): void {
  if (typeof value === 'string' && !isStorableText(value)) {
    addFault(faults, path, 'string_unicode', 'must be valid Unicode text without NUL or lone surrogates')
  }
  if (typeof value === 'number' && !Number.isFinite(value)) {
    addFault(faults, path, 'finite_number', 'must be a number that JSON can hold')
  }
}

/** Every level adds one part to the path, so its length is the number of levels above. */
function isTooDeep(path: readonly string[], faults: FieldError[]): boolean {
  if (path.length < PAYLOAD_MAX_DEPTH) return false
  addFault(faults, path, 'too_deep', `must not nest objects and lists more than ${PAYLOAD_MAX_DEPTH} levels deep`)
  return true
}

function addFault(faults: FieldError[], path: readonly string[], code: string, message: string): void {
  if (faults.length < MAX_FAULTS) faults.push({ field: path.join('.') || 'body', code, message })
}

function isScalarOf(scalars: ReadonlySet<Scalar>, value: unknown): boolean {
  if (typeof value === 'number') return scalars.has('number') || scalars.has('integer')
  if (value === null) return scalars.has('null')
  return (typeof value === 'string' && scalars.has('string')) || (typeof value === 'boolean' && scalars.has('boolean'))
}

const TYPE_CODES: Record<string, string> = {
  object: 'dict_type',
  array: 'list_type',
  string: 'string_type',
  integer: 'float_type',
  number: 'float_type',
  boolean: 'bool_type',
}

function wrongType(shape: Shape, value: unknown): [code: string, message: string] {
  const [only, ...others] = typesOf(shape).filter((type) => type !== 'null')
  const code = only && others.length === 0 ? TYPE_CODES[only] : undefined
  return [code ?? 'value_type', `must be ${inWords(shape)}, not ${nameOf(value)}`]
}

function typesOf(shape: Shape): string[] {
  return [...(shape.object ? ['object'] : []), ...(shape.list ? ['array'] : []), ...shape.scalars]
}

const TYPE_WORDS: Record<string, string> = {
  object: 'an object',
  array: 'a list',
  string: 'a string',
  integer: 'a number',
  number: 'a number',
  boolean: 'true or false',
  null: 'null',
}

function inWords(shape: Shape): string {
  if (isAnything(shape)) return 'any value'
  return typesOf(shape)
    .map((type) => TYPE_WORDS[type])
    .join(' or ')
}

function nameOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  switch (typeof value) {
    case 'object':
      return 'an object'
    case 'string':
      return 'a string'
    case 'number':
      return 'a number'
    case 'boolean':
      return String(value)
    default:
      return 'a value that JSON does not know'
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
