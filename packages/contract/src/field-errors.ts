import type { ErrorObject } from 'ajv'
import type { FieldError } from './errors.ts'

/**
 * Ajv's errors as the contract's FieldErrors, with Pydantic v2's codes (design section 5): fields in the schema's order,
 * unknown fields last, one entry a field. The name of the whole body is `body`.
 */
export function toFieldErrors(errors: readonly ErrorObject[], fieldOrder: readonly string[] = []): FieldError[] {
  const byField = new Map<string, FieldError>()
  for (const error of errors) {
    const fieldError = toFieldError(error)
    if (fieldError && !byField.has(fieldError.field)) byField.set(fieldError.field, fieldError)
  }
  const rank = (entry: FieldError): number => {
    if (entry.code === 'extra_forbidden') return Number.MAX_SAFE_INTEGER
    const place = fieldOrder.indexOf(entry.field.split('.')[0] ?? '')
    return place === -1 ? fieldOrder.length : place
  }
  return [...byField.values()].toSorted((a, b) => rank(a) - rank(b))
}

function toFieldError(error: ErrorObject): FieldError | undefined {
  const params = error.params as Record<string, unknown>
  const path = error.instancePath.split('/').slice(1).map(unescapePointer)
  const at = (code: string, message: string, name?: string): FieldError => ({
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
      return at(...wrongType(error, path.length === 0))
    case 'minLength':
      return at('string_too_short', `must have at least ${plural(Number(params['limit']), 'character')}`)
    case 'maxLength':
      return at('string_too_long', `must have at most ${plural(Number(params['limit']), 'character')}`)
    case 'minItems':
      return at('too_short', `must have at least ${plural(Number(params['limit']), 'item')}`)
    case 'maxItems':
      return at('too_long', `must have at most ${plural(Number(params['limit']), 'item')}`)
    case 'minimum':
      return at('greater_than_equal', `must be at least ${String(params['limit'])}`)
    case 'maximum':
      return at('less_than_equal', `must be at most ${String(params['limit'])}`)
    case 'enum':
      return at('enum', `must be one of ${(params['allowedValues'] as unknown[]).map(String).join(', ')}`)
    case 'pattern':
      return at('string_pattern_mismatch', `must match ${String(params['pattern'])}`)
    case 'format':
      return at(...wrongFormat(String(params['format'])))
    default:
      return at('value_error', error.message ?? 'is not valid')
  }
}

function wrongType(error: ErrorObject, isWholeBody: boolean): [code: string, message: string] {
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
    case 'boolean':
      return ['bool_type', 'must be true or false']
    case 'integer':
      return ['int_type', 'must be a whole number']
    case 'number':
      return ['float_type', 'must be a number']
    case 'array':
      return ['list_type', 'must be a list']
    default:
      return ['value_error', 'has the wrong type']
  }
}

function wrongFormat(format: string): [code: string, message: string] {
  switch (format) {
    case 'uuid':
      return ['uuid_parsing', 'must be a UUID such as 01890a5d-ac96-774b-bcce-b302099a8057']
    case 'storable':
      return ['string_unicode', 'must be valid Unicode text without NUL or lone surrogates']
    case 'date-time':
      return ['datetime_parsing', 'must be a time such as 2026-01-31T09:00:00Z']
    default:
      return ['value_error', `must be a valid ${format}`]
  }
}

function plural(count: number, noun: string): string {
  return `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`
}

function unescapePointer(part: string): string {
  return part.replaceAll('~1', '/').replaceAll('~0', '~')
}
