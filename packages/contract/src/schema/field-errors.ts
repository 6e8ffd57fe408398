import type { ErrorObject } from 'ajv'
import type { FieldCode, FieldError } from '../errors.ts'

/**
 * Converts ajv's errors to field errors with Pydantic v2's codes (contract README, "Errors"): in the order of
 * `fieldOrder`, unknown fields last, one entry a field. `body` is the whole body. `describe` may give another message.
 */
export function toFieldErrors(
  errors: readonly ErrorObject[],
  fieldOrder: readonly string[] = [],
  describe: (error: ErrorObject) => string | undefined = () => undefined,
): FieldError[] {
  const byField = new Map<string, FieldError>()
  for (const error of errors) {
    const fieldError = toFieldError(error)
    if (byField.has(fieldError.field)) continue
    byField.set(fieldError.field, { ...fieldError, message: describe(error) ?? fieldError.message })
  }
  return inFieldOrder(byField.values(), fieldOrder)
}

/** Sorts field errors by the names of `fieldOrder`, those of other fields after them, and unknown fields last. */
export function inFieldOrder(errors: Iterable<FieldError>, fieldOrder: readonly string[]): FieldError[] {
  const ranks = new Map(fieldOrder.map((name, index) => [name, index]))
  const rankOf = ({ field, code }: FieldError): number => {
    if (code === 'extra_forbidden') return fieldOrder.length + 1
    return ranks.get(/^[^.]*/.exec(field)?.[0] ?? '') ?? fieldOrder.length
  }
  const byRank = Map.groupBy(errors, rankOf)
  return [...byRank.keys()].toSorted((a, b) => a - b).flatMap((rank) => byRank.get(rank) ?? [])
}

function toFieldError(error: ErrorObject): FieldError {
  const params = error.params as Record<string, unknown>
  const path = error.instancePath.split('/').slice(1).map(unescapePointer)
  const limit = Number(params['limit'])
  const at = (code: FieldCode, message: string, name?: string): FieldError => ({
    field: [...path, ...(name === undefined ? [] : [name])].join('.') || 'body',
    code,
    message,
  })
  switch (error.keyword) {
    case 'required':
      return at('missing', 'is required', String(params['missingProperty']))
    case 'additionalProperties':
      return at('extra_forbidden', 'is not a known field; remove it', String(params['additionalProperty']))
    case 'type':
      return at(...describeTypeError(error, path.length === 0))
    case 'minLength':
      return at('string_too_short', `must have at least ${pluralize(limit, 'character')}`)
    case 'maxLength':
      return at('string_too_long', `must have at most ${pluralize(limit, 'character')}`)
    case 'minItems':
      return at('too_short', `must have at least ${pluralize(limit, 'item')}`)
    case 'maxItems':
      return at('too_long', `must have at most ${pluralize(limit, 'item')}`)
    case 'minimum':
      return at('greater_than_equal', `must be at least ${limit}`)
    case 'maximum':
      return at('less_than_equal', `must be at most ${limit}`)
    case 'enum':
      return at('enum', `must be one of ${(params['allowedValues'] as unknown[]).map(String).join(', ')}`)
    case 'pattern': {
      const { examples: [example] = [] } = error.parentSchema as { examples?: string[] }
      const advice = example === undefined ? '' : `, such as ${example}`
      return at('string_pattern_mismatch', `must match ${String(params['pattern'])}${advice}`)
    }
    case 'format': {
      const format = String(params['format'])
      return at(...(FORMAT_ERRORS[format] ?? ['value_error', `must be a valid ${format}`]))
    }
    default:
      return at('value_error', error.message ?? 'is not valid')
  }
}

function describeTypeError(error: ErrorObject, isWholeBody: boolean): Described {
  const schema = error.parentSchema as { format?: string; additionalProperties?: unknown } | undefined
  const types = [error.params['type'] as string | string[]].flat().filter((type) => type !== 'null')
  switch (types[0]) {
    case 'object':
      return isWholeBody || schema?.additionalProperties === false
        ? ['model_attributes_type', 'must be a JSON object']
        : ['dict_type', 'must be a JSON object']
    case 'string':
      return schema?.format === 'uuid'
        ? ['uuid_type', 'must be a UUID as a string']
        : ['string_type', 'must be a string']
    default:
      return TYPE_ERRORS[String(types[0])] ?? ['value_error', 'has the wrong type']
  }
}

type Described = readonly [code: FieldCode, message: string]

const TYPE_ERRORS: Readonly<Record<string, Described>> = {
  boolean: ['bool_type', 'must be true or false'],
  integer: ['int_type', 'must be a whole number'],
  number: ['float_type', 'must be a number'],
  array: ['list_type', 'must be a list'],
}

const NOT_STORABLE: Described = ['string_unicode', 'must be valid Unicode text without NUL or lone surrogates']
const FORMAT_ERRORS: Readonly<Record<string, Described>> = {
  uuid: ['uuid_parsing', 'must be a UUID such as 01890a5d-ac96-774b-bcce-b302099a8057'],
  storable: NOT_STORABLE,
  trimmed: NOT_STORABLE,
  name: ['value_error', 'must be valid Unicode text with a character that people can see'],
  'date-time': ['datetime_parsing', 'must be a time such as 2026-01-31T09:00:00Z'],
}

function pluralize(count: number, noun: string): string {
  return `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`
}

/** Decodes a part of a JSON Pointer (RFC 6901, section 4). */
function unescapePointer(part: string): string {
  return part.replaceAll('~1', '/').replaceAll('~0', '~')
}
