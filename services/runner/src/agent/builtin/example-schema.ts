import type { JsonSchema } from '@workflow-service/contract'
import { type ContextValue, isContextObject, NumberText } from './context-value.ts'

/** The fields of an object schema, by name. */
export function listProperties(schema: JsonSchema): [string, JsonSchema][] {
  return Object.entries((schema['properties'] as Record<string, JsonSchema> | undefined) ?? {})
}

/** The schemas of the allowed types; none means that every type is allowed. */
export function listTypes(schema: JsonSchema): JsonSchema[] {
  const alternatives = (schema['anyOf'] as JsonSchema[] | undefined) ?? [schema]
  return alternatives.flatMap((alternative) => {
    const type = alternative['type'] as string | string[] | undefined
    if (type === undefined) return []
    return Array.isArray(type) ? type.map((name) => ({ type: name })) : [alternative]
  })
}

/** Whether the value has the schema's type without a conversion. */
export function hasType(value: ContextValue, schema: JsonSchema): boolean {
  switch (schema['type']) {
    case 'string':
      return typeof value === 'string'
    case 'number':
      return value instanceof NumberText
    case 'boolean':
      return typeof value === 'boolean'
    case 'array':
      return Array.isArray(value)
    case 'object':
      return isContextObject(value)
    default:
      return value === null
  }
}

/** The empty value for a field: null if the example allows it, otherwise the empty value of the simplest type. */
export function emptyValue(schema: JsonSchema): unknown {
  const types = new Map(listTypes(schema).map((type) => [type['type'], type]))
  if (types.size === 0 || types.has('null')) return null
  if (types.has('string')) return ''
  if (types.has('number')) return 0
  if (types.has('boolean')) return false
  if (types.has('array')) return []
  const object = types.get('object') ?? {}
  const required = new Set(object['required'] as string[] | undefined)
  const fields = listProperties(object).filter(([name]) => required.has(name))
  return Object.fromEntries(fields.map(([name, field]) => [name, emptyValue(field)]))
}
