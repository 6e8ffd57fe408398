import {
  compile,
  findExampleErrors,
  type FieldError,
  PAYLOAD_MAX_BYTES,
  toFieldErrors,
  trimWhiteSpace,
  WebhookSourceIn,
} from '@workflow-service/contract'
import { invalidFields } from '@workflow-service/service-kit'
import { findInexactNumber } from './find-inexact-number.ts'
import { checkUrl } from './outbound/check-url.ts'
import type { Subnets } from './outbound/parse-subnets.ts'

const checkShape = compile(WebhookSourceIn)
const EXAMPLE = 'example_request_body'
const FIELD_ORDER = Object.keys(WebhookSourceIn.properties)

/**
 * What was entered, if a save may go on with it; the name without white space at its ends, all else as entered.
 * @throws ApiError 422 with every failing field. `text` is the body as it was sent.
 */
export function validateSource(body: unknown, text: string, allowed: Subnets): WebhookSourceIn {
  const source = withTrimmedName(body)
  const faults = checkShape(source) ? [] : toFieldErrors(checkShape.errors ?? [], FIELD_ORDER)
  if (faults.some(({ field }) => field === 'body')) throw invalidFields(faults)
  const { endpoint_url: url, example_request_body: example } = source as Partial<WebhookSourceIn>
  const isSound = (field: string): boolean => !faults.some((fault) => fault.field === field)
  if (isSound('endpoint_url')) faults.push(...urlFaults(url ?? '', allowed))
  if (isSound(EXAMPLE)) faults.push(...exampleBodyFaults(example ?? {}))
  if (faults.length === 0) faults.push(...numberFaults(text))
  if (faults.length > 0) throw invalidFields(faults.toSorted((a, b) => rank(a) - rank(b)))
  return source as WebhookSourceIn
}

function withTrimmedName(body: unknown): unknown {
  if (typeof body !== 'object' || body === null || !('name' in body) || typeof body.name !== 'string') return body
  return { ...body, name: trimWhiteSpace(body.name) }
}

function urlFaults(url: string, allowed: Subnets): FieldError[] {
  const check = checkUrl(url, allowed)
  return check.isAllowed ? [] : [{ field: 'endpoint_url', code: check.code, message: check.message }]
}

function exampleBodyFaults(example: Record<string, unknown>): FieldError[] {
  const faults = findExampleErrors(example, EXAMPLE)
  if (faults.length > 0) return faults
  const bytes = Buffer.byteLength(JSON.stringify(example))
  if (bytes <= PAYLOAD_MAX_BYTES) return []
  const message = `must be at most ${PAYLOAD_MAX_BYTES.toLocaleString('en')} bytes of JSON; it has ${bytes.toLocaleString('en')}`
  return [{ field: EXAMPLE, code: 'too_large', message }]
}

/** No other field of a sound body holds numbers. */
function numberFaults(text: string): FieldError[] {
  const number = findInexactNumber(text)
  if (number === undefined) return []
  const message = `holds the number ${number}, which cannot be kept digit by digit: shorten it, or write it as a string`
  return [{ field: EXAMPLE, code: 'inexact_number', message }]
}

/** In the schema's order, what is unknown last. */
function rank({ field, code }: FieldError): number {
  const place = FIELD_ORDER.indexOf(field.split('.')[0] ?? '')
  return code === 'extra_forbidden' && place === -1 ? FIELD_ORDER.length + 1 : place
}
