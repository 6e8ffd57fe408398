import type { JsonValue, RuleConversions } from '@workflow-service/rules'
import { type Conversion, splitText, toBoolean, toNumber, toText } from '../builtin/convert-value.ts'
import { type ContextValue, NumberText } from '../builtin/parse-context.ts'

/** The functions of rules convert as the built-in agent converts the values of the context. */
export const RULE_CONVERSIONS: RuleConversions = {
  number: (value) => result(toNumber(toContextValue(value))) as number,
  text: (value) => toText(toContextValue(value)),
  yes: (value) => result(toBoolean(toContextValue(value))) as boolean,
  list: (value) => (Array.isArray(value) ? value : typeof value === 'string' ? splitText(value) : [value]),
}

function result(conversion: Conversion): unknown {
  if ('error' in conversion) throw new Error(conversion.error)
  return conversion.value
}

function toContextValue(value: JsonValue): ContextValue {
  if (typeof value === 'number') return new NumberText(String(value))
  if (Array.isArray(value)) return value.map(toContextValue)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, toContextValue(item)]))
}
