import type { FieldError } from '../errors.ts'
import { checkJsonValue, checkReservedType, collectErrors } from './check-json-value.ts'
import { isJsonObject } from './payload-shape.ts'

/**
 * Lists what makes an example request body unusable (contract README, "Webhook sources"): it is not an object, has the
 * `type` of verification requests, nests too deep, or holds text or names that the service refuses. At most 20 entries;
 * empty if the example is valid. `field` is the example's name in the caller's input.
 */
export function findExampleErrors(example: unknown, field = 'example_request_body'): FieldError[] {
  if (!isJsonObject(example)) return [{ field, code: 'dict_type', message: 'must be a JSON object' }]
  const collector = collectErrors()
  checkReservedType(example, collector)
  checkJsonValue(example, [], collector)
  return collector.errors.map((error) => ({
    ...error,
    field: error.field === 'body' ? field : `${field}.${error.field}`,
  }))
}
