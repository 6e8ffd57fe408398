import type { FieldCode, FieldError } from '../errors.ts'
import {
  EXAMPLE_MAX_BYTES,
  EXAMPLE_MAX_FIELDS,
  EXAMPLE_MAX_LIST_LENGTH,
  MISMATCHES_MAX_COUNT,
  PAYLOAD_MAX_BYTES,
  PAYLOAD_MAX_DEPTH,
  PAYLOAD_MAX_VALUES,
} from '../limits.ts'
import { isJsonObject } from './payload-shape.ts'
import { isStorableText, toStorableText } from './text.ts'

/**
 * The top-level `type` by which receivers recognize a verification request (contract README, "Verification request").
 */
export const VERIFICATION_TYPE = 'service.webhook.verification'

/** Characters of a path in an error. A name can be as long as the whole body, and up to 20 errors repeat it. */
const PATH_MAX_LENGTH = 500

/** The field errors of one body: at most MISMATCHES_MAX_COUNT, after which the check ends. */
export type ErrorCollector = ReturnType<typeof collectErrors>

interface CollectorOptions {
  readonly maxBytes?: number
  readonly maxFields?: number
  readonly maxListLength?: number
  /** The errors to collect. Default: all. */
  readonly only?: FieldCode
}

/** Creates an empty list of field errors. The limits are those of the body, beside PAYLOAD_MAX_VALUES. */
export function collectErrors(options: CollectorOptions = {}) {
  const { maxBytes = PAYLOAD_MAX_BYTES, maxFields = Infinity, maxListLength = Infinity, only } = options
  const errors: FieldError[] = []
  let isFull = false
  /** `path` is the list of names from the body to the field; empty for the body itself. */
  const add = (path: readonly string[], code: FieldCode, message: string): void => {
    if (only !== undefined && code !== only) return
    if (!isFull) errors.push({ field: formatPath(path), code, message })
    isFull ||= errors.length === MISMATCHES_MAX_COUNT
  }
  /** Counts what the whole body has. The error beyond the limit ends the check. */
  const limit = (max: number, code: FieldCode, unit: string) => {
    let left = max
    return (count = 1): void => {
      left -= count
      if (left >= 0 || isFull) return
      add([], code, `must have at most ${max.toLocaleString('en')} ${unit} in all; it has more`)
      isFull = true
    }
  }
  return {
    errors,
    maxBytes,
    maxListLength,
    only,
    get isFull() {
      return isFull
    },
    add,
    countValue: limit(PAYLOAD_MAX_VALUES, 'too_large', 'values'),
    countFields: limit(maxFields, 'too_many_fields', 'named fields'),
  }
}

/**
 * Joins the names from the body to a field, in text that PostgreSQL can store: `lines.0.price`; `body` for the body
 * itself.
 */
function formatPath(path: readonly string[]): string {
  const text = path.map((name) => name.slice(0, PATH_MAX_LENGTH)).join('.') || 'body'
  const shortened = text.length <= PATH_MAX_LENGTH ? text : `${text.slice(0, PATH_MAX_LENGTH - 1)}…`
  return toStorableText(shortened)
}

/** Adds an error if a receiver would take the body for a verification request. */
export function checkReservedType(body: unknown, errors: ErrorCollector): void {
  if (!isJsonObject(body) || !Object.hasOwn(body, 'type') || body['type'] !== VERIFICATION_TYPE) return
  const message = `must not be ${VERIFICATION_TYPE}: receivers recognize verification requests by it`
  errors.add(['type'], 'reserved_value', message)
}

/**
 * Checks the rules that hold for every value of an example or payload: number of values, depth, names, text, numbers.
 */
export function checkJsonValue(value: unknown, path: readonly string[], errors: ErrorCollector): void {
  errors.countValue()
  if (typeof value !== 'object' || value === null) return checkScalar(value, path, errors)
  if (reportTooDeep(path, errors)) return
  const isList = Array.isArray(value)
  if (isList && value.length > errors.maxListLength) {
    return errors.add(path, 'too_long', `must not have lists of more than ${errors.maxListLength} items`)
  }
  const items = Object.entries(value)
  if (!isList) errors.countFields(items.length)
  for (const [name, item] of items) {
    if (errors.isFull) return
    const itemPath = [...path, name]
    if (!isList && name === '__proto__') {
      errors.add(itemPath, 'reserved_name', 'must have another name: many JSON parsers drop __proto__')
    } else if (!isStorableText(name)) {
      errors.add(itemPath, 'string_unicode', 'must have a name without NUL or lone surrogates')
    } else {
      checkJsonValue(item, itemPath, errors)
    }
  }
}

/** The limits of an example, beside those of every JSON object. */
const LIMITS = { maxBytes: EXAMPLE_MAX_BYTES, maxFields: EXAMPLE_MAX_FIELDS, maxListLength: EXAMPLE_MAX_LIST_LENGTH }

/**
 * Lists what makes an example request body unusable (contract README, "Webhook sources"): it is not an object, exceeds
 * a limit, has the `type` of verification requests, or holds text or names that the service refuses. At most 20
 * entries; empty if the example is valid. `field` is the example's name in the caller's input. Runs in browsers too.
 */
export function findExampleErrors(example: unknown, field = 'example_request_body'): FieldError[] {
  if (!isJsonObject(example)) return [{ field, code: 'dict_type', message: 'must be a JSON object' }]
  const collector = collectErrors(LIMITS)
  checkReservedType(example, collector)
  return checkJsonObject(example, field, collector)
}

/**
 * Lists what makes a JSON object unusable: its size, depth, number of values, names, texts or numbers. At most 20
 * entries.
 */
export function findJsonObjectErrors(object: object, field: string): FieldError[] {
  return checkJsonObject(object, field, collectErrors())
}

/** Checks the values of an object, and its size. The errors are those of a field of what the caller sent. */
function checkJsonObject(object: object, field: string, collector: ErrorCollector): FieldError[] {
  const { errors, maxBytes } = collector
  checkJsonValue(object, [], collector)
  // The size only then, because the depth is limited.
  if (errors.length === 0 && new TextEncoder().encode(JSON.stringify(object)).length > maxBytes) {
    collector.add([], 'too_large', `must be at most ${maxBytes.toLocaleString('en')} bytes of JSON; it has more`)
  }
  return errors.map((error) => ({ ...error, field: error.field === 'body' ? field : `${field}.${error.field}` }))
}

/** Checks a string, number, boolean or null. */
export function checkScalar(value: unknown, path: readonly string[], errors: ErrorCollector): void {
  if (typeof value === 'string' && !isStorableText(value)) {
    errors.add(path, 'string_unicode', 'must be valid Unicode text without NUL or lone surrogates')
  }
  if (typeof value === 'number' && !Number.isFinite(value)) {
    errors.add(path, 'finite_number', 'must be a finite number')
  }
}

/**
 * Adds an error, and returns true, if an object or list at this path exceeds PAYLOAD_MAX_DEPTH. The path's length is
 * its depth.
 */
export function reportTooDeep(path: readonly string[], errors: ErrorCollector): boolean {
  if (path.length < PAYLOAD_MAX_DEPTH) return false
  errors.add(path, 'too_deep', `must not nest objects and lists more than ${PAYLOAD_MAX_DEPTH} levels deep`)
  return true
}

/** Whether objects and lists nest in more than `levels` levels. Not recursive, so any depth is safe. */
export function isDeeperThan(value: unknown, levels: number): boolean {
  let level = [value].filter(isNesting)
  for (let depth = 1; level.length > 0; depth += 1) {
    if (depth > levels) return true
    level = level.flatMap((item) => Object.values(item).filter(isNesting))
  }
  return false
}

function isNesting(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}
