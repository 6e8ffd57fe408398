import type { JsonValue, RuleConversions } from '@workflow-service/rules'
import { describeValue, toNumber } from '../builtin/convert-value.ts'
import { type ContextValue, NumberText } from '../builtin/read-context.ts'

/** The conversions of the functions of rules (docs/rules.md, "Functions"). No value becomes an empty one. */
export const RULE_CONVERSIONS: RuleConversions = {
  number: (value) => toAmount(value),
  text: (value) => toText(value),
  date: (value) => toDate(value),
  yes: (value) => toYes(value),
  list: (value) => (Array.isArray(value) ? value : typeof value === 'string' ? splitText(value) : [value]),
}

/** A currency or unit beside a number, as a sign or three capital letters: `€ 12.50`, `12.50 EUR`. */
const AMOUNT = /^(?:(?:\p{Sc}|[A-Z]{3})\s?)?(?<number>-?\d[\d.,]*)(?:\s?(?:\p{Sc}|[A-Z]{3}))?$/u

/** Groups of three digits, and decimals after the other separator: `1,234.56`, `1.234,56`, `1,234,567`. */
const GROUPED = /^-?[1-9]\d{0,2}(?:(?:,\d{3})+\.\d+|(?:\.\d{3})+,\d+|(?:,\d{3}){2,}|(?:\.\d{3}){2,})$/

/** Reads a number. One separator before three digits (`1,234`) can be decimals or thousands, and is refused. */
function toAmount(value: JsonValue): number {
  const written = typeof value === 'string' ? (AMOUNT.exec(value.trim())?.groups?.['number'] ?? value) : value
  let text = written
  if (typeof written === 'string' && GROUPED.test(written)) {
    const decimal = written.replace(/[^.,]/g, '').at(-1) ?? ''
    const isWhole = written.split(decimal).length > 2
    text = isWhole ? written.replaceAll(decimal, '') : written.replace(/[.,](?=.*[.,])/g, '').replace(',', '.')
  } else if (typeof written === 'string' && /^-?\d+,(?:\d{1,2}|\d{4,})$/.test(written)) {
    text = written.replace(',', '.')
  }
  const result = toNumber(toContextValue(text))
  if ('value' in result) return result.value
  throw new Error(typeof value === 'string' && text === value ? result.error : `${describe(value)} is not a number`)
}

function toText(value: JsonValue): string {
  if (typeof value === 'string') return value
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  const isPlain = Array.isArray(value) && value.every((item) => item !== null && typeof item !== 'object')
  if (isPlain && value.length > 0) return value.join(', ')
  throw new Error(`${describe(value)} is no text`)
}

const YES = ['true', 'yes', 'y', 'on']
const NO = ['false', 'no', 'n', 'off']

function toYes(value: JsonValue): boolean {
  if (typeof value === 'boolean') return value
  const word = typeof value === 'string' ? value.trim().toLowerCase() : ''
  if (YES.includes(word) || NO.includes(word)) return YES.includes(word)
  throw new Error(`${describe(value)} is not yes or no`)
}

function splitText(text: string): string[] {
  return text
    .split(/[,;]/)
    .map((part) => part.trim())
    .filter((part) => part !== '')
}

/**
 * An ISO 8601 date, or the date of an ISO 8601 time as it is written there. Other notations can be read in several
 * ways.
 */
const ISO_DATE = /^(\d{4}-\d\d-\d\d)(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)?)?$/

function toDate(value: JsonValue): string {
  const date = typeof value === 'string' ? (ISO_DATE.exec(value.trim())?.[1] ?? '') : ''
  const time = new Date(`${date}T00:00:00Z`)
  // 2026-02-30 is read as March 2.
  if (!Number.isNaN(time.getTime()) && time.toISOString().startsWith(date)) return date
  throw new Error(`${describe(value)} is no date such as 2026-01-31`)
}

function describe(value: JsonValue): string {
  return describeValue(toContextValue(value))
}

/** The value as the built-in agent reads one from a context. */
export function toContextValue(value: JsonValue): ContextValue {
  if (typeof value === 'number') return new NumberText(String(value))
  if (Array.isArray(value)) return value.map(toContextValue)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, toContextValue(item)]))
}
