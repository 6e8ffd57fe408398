import { isJsonObject } from '@workflow-service/contract'
import type { JsonValue } from '@workflow-service/rules'

export type JsonObject = { readonly [name: string]: JsonValue }

/** The example without the fields that the values give. An object of which nothing is left is left out. */
export function withoutFields(example: Record<string, unknown>, values: JsonObject): Record<string, unknown> {
  const entries = Object.entries(example).flatMap(([name, field]): [string, unknown][] => {
    if (!Object.hasOwn(values, name)) return [[name, field]]
    const value = values[name]
    if (!isJsonObject(field) || !isJsonObject(value)) return []
    const rest = withoutFields(field, value)
    return Object.keys(rest).length > 0 ? [[name, rest]] : []
  })
  return Object.fromEntries(entries)
}

/** The filled fields with the values, in the order of the example. Other fields of the values are last. */
export function mergeValues(
  example: Record<string, unknown>,
  filled: Record<string, unknown>,
  values: JsonObject,
): Record<string, unknown> {
  const names = new Set([...Object.keys(example), ...Object.keys(filled), ...Object.keys(values)])
  const entries = [...names].flatMap((name): [string, unknown][] => {
    if (!Object.hasOwn(values, name)) return Object.hasOwn(filled, name) ? [[name, filled[name]]] : []
    const value = values[name]
    const field = Object.hasOwn(example, name) ? example[name] : undefined
    const rest = Object.hasOwn(filled, name) ? filled[name] : {}
    return [
      [
        name,
        isJsonObject(field) && isJsonObject(value) && isJsonObject(rest) ? mergeValues(field, rest, value) : value,
      ],
    ]
  })
  return Object.fromEntries(entries)
}
