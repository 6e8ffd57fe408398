import type { FieldError } from '@workflow-service/contract'
import type { TSchema } from 'typebox'

/**
 * The query parameters that the schema names, out of text: whole numbers become numbers (decimal digits only), defaults
 * are filled in, unknown parameters are left out, and one that is repeated is a fault.
 */
export function readQuery(
  schema: TSchema,
  given: Record<string, unknown>,
): { query: Record<string, unknown>; faults: FieldError[] } {
  const { properties } = schema as unknown as { properties: Record<string, { type?: unknown; default?: unknown }> }
  const query: Record<string, unknown> = {}
  const faults: FieldError[] = []
  for (const [name, property] of Object.entries(properties)) {
    const value = given[name]
    if (value === undefined) {
      if (property.default !== undefined) query[name] = property.default
    } else if (typeof value !== 'string') {
      faults.push({ field: name, code: 'string_type', message: 'must be given once' })
    } else if (property.type !== 'integer') {
      query[name] = value
    } else if (/^\d{1,9}$/.test(value)) {
      query[name] = Number(value)
    } else {
      faults.push({ field: name, code: 'int_parsing', message: 'must be a whole number in decimal digits' })
    }
  }
  return { query, faults }
}
