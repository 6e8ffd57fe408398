import type { FieldCode, FieldError } from '../errors.ts'
import {
  checkJsonValue,
  checkReservedType,
  checkScalar,
  collectErrors,
  type ErrorCollector,
  reportTooDeep,
} from './check-json-value.ts'
import { allowsAnyField, allowsAnyValue, inferShape, isJsonObject, typesOf } from './payload-shape.ts'
import type { ObjectShape, PayloadShape, ScalarType } from './payload-shape.ts'
import { truncateText } from './text.ts'

/**
 * Lists where the payload does not follow the example, field by field (`lines.0.price`; `body` is the payload itself),
 * in words that an agent can act on. At most 20 entries; empty if the payload may be sent (contract README, "Payload
 * request"). Takes time in proportion to the sizes of example and payload. It reads at most PAYLOAD_MAX_VALUES values
 * of the payload.
 */
export function findPayloadMismatches(example: Record<string, unknown>, payload: unknown): FieldError[] {
  const collector = collectErrors()
  checkReservedType(payload, collector)
  compareValue(inferShape(example), payload, [], collector)
  return collector.errors
}

/**
 * Lists the fields of a payload that the example does not have, however many others do not follow it; at most 20
 * entries.
 */
export function findUnknownFields(example: Record<string, unknown>, payload: Record<string, unknown>): FieldError[] {
  const collector = collectErrors({ only: 'extra_forbidden' })
  compareValue(inferShape(example), payload, [], collector)
  return collector.errors
}

/** Formats the mismatches as one text: the `reason` of a delivery that is `invalid`. */
export function describeMismatches(mismatches: readonly FieldError[]): string {
  const list = mismatches.map(({ field, message }) => `${field}: ${message}`).join('; ')
  return `The payload does not follow the example request body. ${list}`
}

function compareValue(shape: PayloadShape, value: unknown, path: readonly string[], errors: ErrorCollector): void {
  if (allowsAnyValue(shape)) return checkJsonValue(value, path, errors)
  if (isJsonObject(value) && shape.object) return compareObject(shape.object, value, path, errors)
  errors.countValue()
  if (Array.isArray(value) && shape.list) {
    if (reportTooDeep(path, errors)) return
    for (const [index, item] of value.entries()) {
      if (errors.isFull) return
      compareValue(shape.list, item, [...path, String(index)], errors)
    }
    return
  }
  if (!isAllowedScalar(shape.scalars, value)) return errors.add(path, ...describeTypeMismatch(shape, value))
  checkScalar(value, path, errors)
}

/** Takes time in proportion to the payload's fields: the example's are only searched for one that is missing. */
function compareObject(
  object: ObjectShape,
  value: Record<string, unknown>,
  path: readonly string[],
  errors: ErrorCollector,
): void {
  if (allowsAnyField(object)) return checkJsonValue(value, path, errors)
  errors.countValue()
  if (reportTooDeep(path, errors)) return
  const unknown: string[] = []
  let missingCount = object.required.size
  for (const name of Object.keys(value)) {
    if (errors.isFull) return
    if (object.required.has(name)) missingCount -= 1
    const shape = object.fields.get(name)
    if (shape) compareValue(shape, value[name], [...path, name], errors)
    else unknown.push(name)
  }
  const listsMissing = errors.only === undefined || errors.only === 'missing'
  for (const name of listsMissing && missingCount > 0 ? object.required : []) {
    if (errors.isFull) return
    const shape = object.fields.get(name)
    if (!shape || Object.hasOwn(value, name)) continue
    errors.add([...path, name], 'missing', `is required: ${describeShape(shape)}`)
  }
  if (unknown.length === 0) return
  const message = `is not in the example; the fields here are ${listNames(object.fields)}`
  for (const name of unknown) {
    if (errors.isFull) return
    errors.add([...path, name], 'extra_forbidden', message)
  }
}

/** Names in one message, and characters of each. */
const LISTED_NAMES = 20
const LISTED_NAME_LENGTH = 100

function listNames(fields: ReadonlyMap<string, PayloadShape>): string {
  const names = [...fields.keys()]
    .slice(0, LISTED_NAMES)
    .map((name) => JSON.stringify(truncateText(name, LISTED_NAME_LENGTH)))
  const more = fields.size > LISTED_NAMES ? ` and ${fields.size - LISTED_NAMES} more` : ''
  return `${names.join(', ')}${more}`
}

function isAllowedScalar(scalars: ReadonlySet<ScalarType>, value: unknown): boolean {
  return scalars.has(typeOf(value) as ScalarType) || (typeof value === 'number' && scalars.has('integer'))
}

type AllowedType = ReturnType<typeof typesOf>[number]

const TYPES: Record<AllowedType, readonly [code: FieldCode, words: string]> = {
  object: ['dict_type', 'an object'],
  array: ['list_type', 'a list'],
  string: ['string_type', 'a string'],
  integer: ['float_type', 'a number'],
  number: ['float_type', 'a number'],
  boolean: ['bool_type', 'true or false'],
  null: ['value_type', 'null'],
}

function typeOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}

function describeTypeMismatch(shape: PayloadShape, value: unknown): [code: FieldCode, message: string] {
  const [only, ...others] = typesOf(shape).filter((type) => type !== 'null')
  const [code] = TYPES[only && others.length === 0 ? only : 'null']
  return [code, `must be ${describeShape(shape)}, not ${describeValue(value)}`]
}

function describeShape(shape: PayloadShape): string {
  if (allowsAnyValue(shape)) return 'any value'
  return typesOf(shape)
    .map((type) => TYPES[type][1])
    .join(' or ')
}

function describeValue(value: unknown): string {
  if (typeof value === 'boolean') return String(value)
  const type = typeOf(value)
  return type in TYPES ? TYPES[type as AllowedType][1] : 'a value that JSON cannot represent'
}
