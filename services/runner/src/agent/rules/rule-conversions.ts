import type { JsonValue, RuleConversions } from '@workflow-service/rules'
import { type Conversion, describeValue, splitText, toBoolean, toNumber, toText } from '../builtin/convert-value.ts'
import { type ContextValue, NumberText } from '../builtin/context-value.ts'

/** The functions of rules convert as the built-in agent converts the values of the context. */
export const RULE_CONVERSIONS: RuleConversions = {
  number: (value) => result(toNumber(toContextValue(value))) as number,
  text: (value) => toText(toContextValue(value)),
  date: (value) => toDate(value),
  yes: (value) => result(toBoolean(toContextValue(value))) as boolean,
  list: (value) => (Array.isArray(value) ? value : typeof value === 'string' ? splitText(value) : [value]),
}

/** An ISO 8601 date, or the date of an ISO 8601 time as it is written there. Other notations can be read in several ways. */
const ISO_DATE = /^(\d{4}-\d\d-\d\d)(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)?)?$/

function toDate(value: JsonValue): string {
  const date = typeof value === 'string' ? (ISO_DATE.exec(value.trim())?.[1] ?? '') : ''
  const time = new Date(`${date}T00:00:00Z`)
  // 2026-02-30 is read as March 2.
  if (!Number.isNaN(time.getTime()) && time.toISOString().startsWith(date)) return date
  throw new Error(`${describeValue(toContextValue(value))} is no date such as 2026-01-31`)
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
