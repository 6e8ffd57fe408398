import type { FieldError } from '../errors.ts'
import { EXAMPLE_MAX_BYTES, EXAMPLE_MAX_FIELDS, EXAMPLE_MAX_LIST_LENGTH } from '../limits.ts'
import { checkJsonObject, checkReservedType, collectErrors, errorsAt } from './check-json-value.ts'
import { isJsonObject } from './payload-shape.ts'

export { VERIFICATION_TYPE } from './check-json-value.ts'

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
  checkJsonObject(example, collector)
  return errorsAt(field, collector)
}
