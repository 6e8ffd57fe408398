import { describeValue, toNumber } from './convert-value.ts'
import type { JsonValue } from './to-json.ts'

// The conversions of the functions of rules (docs/rules.md, "Functions"). No value becomes an empty one: each throws an
// Error with the reason if the value cannot be converted.

/** A currency or unit beside a number, as a sign or three capital letters: `€ 12.50`, `12.50 EUR`. */
const AMOUNT = /^(?:(?:\p{Sc}|[A-Z]{3})\s?)?(?<number>-?\d[\d.,]*)(?:\s?(?:\p{Sc}|[A-Z]{3}))?$/u

/** Groups of three digits, and decimals after the other separator: `1,234.56`, `1.234,56`, `1,234,567`. */
const GROUPED = /^-?[1-9]\d{0,2}(?:(?:,\d{3})+\.\d+|(?:\.\d{3})+,\d+|(?:,\d{3}){2,}|(?:\.\d{3}){2,})$/

/** Converts to a number. One separator before three digits (`1,234`) can be decimals or thousands, and is refused. */
export function toAmount(value: JsonValue): number {
  const written = typeof value === 'string' ? (AMOUNT.exec(value.trim())?.groups?.['number'] ?? value) : value
  let text = written
  if (typeof written === 'string' && GROUPED.test(written)) {
    const decimalAt = Math.max(written.lastIndexOf('.'), written.lastIndexOf(','))
    const isWhole = written.indexOf(written.charAt(decimalAt)) < decimalAt
    const whole = isWhole ? written : written.slice(0, decimalAt)
    text = whole.replace(/[.,]/g, '') + (isWhole ? '' : `.${written.slice(decimalAt + 1)}`)
  } else if (typeof written === 'string' && /^-?\d+,(?:\d{1,2}|\d{4,})$/.test(written)) {
    text = written.replace(',', '.')
  }
  const result = toNumber(text)
  if ('value' in result) return result.value
  throw new Error(
    typeof value === 'string' && text === value ? result.error : `${describeValue(value)} is not a number`,
  )
}

export function toText(value: JsonValue): string {
  if (typeof value === 'string') return value
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  const isPlain = Array.isArray(value) && value.every((item) => item !== null && typeof item !== 'object')
  if (isPlain && value.length > 0) return value.join(', ')
  throw new Error(`${describeValue(value)} is no text`)
}

const YES = ['true', 'yes', 'y', 'on']
const NO = ['false', 'no', 'n', 'off']

export function toYes(value: JsonValue): boolean {
  if (typeof value === 'boolean') return value
  const word = typeof value === 'string' ? value.trim().toLowerCase() : ''
  if (YES.includes(word) || NO.includes(word)) return YES.includes(word)
  throw new Error(`${describeValue(value)} is not yes or no`)
}

/** The list, or a list of the parts of a text, or of the value itself. */
export function toList(value: JsonValue): readonly JsonValue[] {
  if (typeof value !== 'string') return Array.isArray(value) ? value : [value]
  return Array.from(value.matchAll(/[^,;\s][^,;]*/g), ([part]) => part.trimEnd())
}

/**
 * An ISO 8601 date, or the date of an ISO 8601 time as it is written there. Other notations can be read in several
 * ways.
 */
const ISO_DATE = /^(\d{4}-\d\d-\d\d)(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)?)?$/

export function toDate(value: JsonValue): string {
  const date = typeof value === 'string' ? (ISO_DATE.exec(value.trim())?.[1] ?? '') : ''
  const time = new Date(`${date}T00:00:00Z`)
  // 2026-02-30 is read as March 2.
  if (!Number.isNaN(time.getTime()) && time.toISOString().startsWith(date)) return date
  throw new Error(`${describeValue(value)} is no date such as 2026-01-31`)
}
