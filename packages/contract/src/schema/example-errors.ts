import type { FieldCode, FieldError } from '../errors.ts'
import {
  EXAMPLE_MAX_BYTES,
  EXAMPLE_MAX_FIELDS,
  EXAMPLE_MAX_LIST_LENGTH,
  PAYLOAD_MAX_BYTES,
  PAYLOAD_MAX_DEPTH,
  PAYLOAD_MAX_VALUES,
} from '../limits.ts'
import { checkJsonValue, checkReservedType, collectErrors, errorsAt, formatPath } from './check-json-value.ts'
import { countJsonBytes } from './json-size.ts'
import { isJsonObject } from './payload-shape.ts'

export { VERIFICATION_TYPE } from './check-json-value.ts'

/**
 * Lists what makes an example request body unusable (contract README, "Webhook sources"): it is not an object, exceeds
 * a limit, has the `type` of verification requests, or holds text or names that the service refuses. At most 20
 * entries; empty if the example is valid. `field` is the example's name in the caller's input. An example that exceeds
 * a limit has that one entry only, and what follows is not read: the time is bounded, regardless of the example's size.
 */
export function findExampleErrors(example: unknown, field = 'example_request_body'): FieldError[] {
  if (!isJsonObject(example)) return [{ field, code: 'dict_type', message: 'must be a JSON object' }]
  const exceeded = findExceededExampleLimit(example)
  if (exceeded) return [{ field, ...exceeded }]
  const collector = collectErrors()
  checkReservedType(example, collector)
  checkJsonValue(example, [], collector)
  return errorsAt(field, collector)
}

/**
 * Says which limit a stored example exceeds and what to do, as the second half of a sentence; undefined if it may be
 * used. `null` is an example that was not read because it is larger than EXAMPLE_MAX_BYTES.
 */
export function findStoredExampleError(example: Record<string, unknown> | null): string | undefined {
  const exceeded = example === null ? tooLarge('more') : findExceededExampleLimit(example)
  return exceeded && `its example request body ${exceeded.message}; save the source again with a smaller example`
}

interface ExceededLimit {
  readonly code: FieldCode
  readonly message: string
}

interface ExampleSize {
  bytes: number
  fields: number
  values: number
}

/** Counting stops here. An example made of YAML aliases can be exponentially larger than its source. */
const COUNTED_MAX_BYTES = PAYLOAD_MAX_BYTES

/**
 * Returns the limit that an example exceeds, such as one that was stored before there were limits. Reads no more than
 * the limits.
 */
function findExceededExampleLimit(example: Record<string, unknown>): ExceededLimit | undefined {
  const size: ExampleSize = { bytes: 0, fields: 0, values: 0 }
  const exceeded = measureValue(example, [], size)
  if (exceeded) return exceeded
  const { bytes, fields, values } = size
  const isCounted = bytes <= COUNTED_MAX_BYTES
  if (bytes > EXAMPLE_MAX_BYTES) {
    return tooLarge(isCounted ? format(bytes) : `more than ${format(COUNTED_MAX_BYTES)}`)
  }
  if (fields > EXAMPLE_MAX_FIELDS) {
    const message = `must have at most ${format(EXAMPLE_MAX_FIELDS)} named fields in all; it has ${format(fields)}`
    return { code: 'too_many_fields', message }
  }
  if (values > PAYLOAD_MAX_VALUES) {
    const message = `must have at most ${format(PAYLOAD_MAX_VALUES)} values in all; it has ${format(values)}`
    return { code: 'too_large', message }
  }
  return undefined
}

function tooLarge(found: string): ExceededLimit {
  return { code: 'too_large', message: `must be at most ${format(EXAMPLE_MAX_BYTES)} bytes of JSON; it has ${found}` }
}

/** Adds the value to the size. Returns the first list that is too long, or the first value that is too deep. */
function measureValue(value: unknown, path: readonly string[], size: ExampleSize): ExceededLimit | undefined {
  size.values += 1
  if (typeof value !== 'object' || value === null) {
    size.bytes += countJsonBytes(value)
    return undefined
  }
  if (path.length >= PAYLOAD_MAX_DEPTH) {
    const message = `must not nest objects and lists more than ${PAYLOAD_MAX_DEPTH} levels deep; ${formatPath(path)} is deeper`
    return { code: 'too_deep', message }
  }
  const isList = Array.isArray(value)
  if (isList && value.length > EXAMPLE_MAX_LIST_LENGTH) {
    const message = `must not have lists of more than ${EXAMPLE_MAX_LIST_LENGTH} items; ${formatPath(path)} has ${format(value.length)}`
    return { code: 'too_long', message }
  }
  const names = Object.keys(value)
  // Two brackets, and a comma between each two entries.
  size.bytes += 2 + Math.max(0, names.length - 1)
  if (!isList) size.fields += names.length
  for (const name of names) {
    if (size.bytes > COUNTED_MAX_BYTES) return undefined
    if (!isList) size.bytes += countJsonBytes(name) + 1
    const exceeded = measureValue((value as Record<string, unknown>)[name], [...path, name], size)
    if (exceeded) return exceeded
  }
  return undefined
}

function format(count: number): string {
  return count.toLocaleString('en')
}
