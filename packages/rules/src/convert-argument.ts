import { findInexactNumber } from '@workflow-service/contract/find-inexact-number'
import { readIsoDate } from '@workflow-service/contract/payload-shape'
import { describeValue, toNumber } from './convert-value.ts'
import type { JsonValue } from './to-json.ts'

// The conversions of the arguments of functions (docs/rules.md, "Functions"). No value becomes an empty one: each
// throws an Error with the reason if the value cannot be converted.

/** A currency or unit beside a number, as a sign or capital letters: `€ 12.50`, `US$12.50`, `12.50 EUR`. */
const UNIT = String.raw`(?:[A-Z]{0,3}\p{Sc}|[A-Z]{3})`
const AMOUNT = new RegExp(
  String.raw`^(?<sign>[-−]?)(?<before>${UNIT}\s?)?(?<inner>[-−]?)(?<number>\d(?:[\d.,]|[ \u00a0\u2009\u202f'’](?=\d))*)(?<after>\s?${UNIT})?$`,
  'u',
)

/** Groups of three digits: `1,234.56`, `1.234,56`, `1,234,567`, and `1 234,56` or `1'234.56` of any separator. */
const GROUPED =
  /^[1-9]\d{0,2}(?:(?:,\d{3})+\.\d+|(?:\.\d{3})+,\d+|(?:,\d{3}){2,}|(?:\.\d{3}){2,}|(?<mark>[ \u00a0\u2009\u202f'’])\d{3}(?:\k<mark>\d{3})*(?:[.,]\d+)?)$/

/** A decimal after a comma, not before three digits as in `1,234`. */
const DECIMAL_COMMA = /^(?:\d+,(?:\d{1,2}|\d{4,})|(?:0|[1-9]\d{3,}),\d{3})$/

/** Three digits after the only separator, which can be decimals or thousands. */
const AMBIGUOUS = /^[1-9]\d{0,2}(?<mark>[.,])\d{3}$/

/**
 * Converts to a number. One separator before three digits can be decimals or thousands, and is refused: a comma, and a
 * point in an amount of money. `1.234` alone is a plain decimal.
 */
export function toAmount(value: JsonValue): number {
  const result = toNumber(typeof value === 'string' ? toPlainNumber(value.trim()) : value)
  if ('value' in result) return result.value
  throw new Error(typeof value === 'string' ? result.error : `${describeValue(value)} is not a number`)
}

/** The amount in the notation of `toNumber`; the text itself if it is none. */
function toPlainNumber(text: string): string {
  const { sign = '', before, inner = '', number = '', after } = AMOUNT.exec(text)?.groups ?? {}
  const mark = AMBIGUOUS.exec(number)?.groups?.['mark']
  if (mark === ',' || (mark === '.' && (before ?? after) !== undefined)) {
    const [decimal, whole] = [Number(number.replace(mark, '.')), number.replace(mark, '')]
    throw new Error(
      `${describeValue(text)} can be ${decimal} or ${whole}; if it is ${whole}, write number(replace(…, "${mark}", ""))`,
    )
  }
  if (number === '' || (sign !== '' && inner !== '')) return text
  const minus = sign === '' && inner === '' ? '' : '-'
  if (DECIMAL_COMMA.test(number)) return `${minus}${number.replace(',', '.')}`
  if (!GROUPED.test(number)) return `${minus}${number}`
  const last = Math.max(number.lastIndexOf('.'), number.lastIndexOf(','))
  const isWhole = last === -1 || number.indexOf(number.charAt(last)) < last
  const whole = (isWhole ? number : number.slice(0, last)).replace(/\D/g, '')
  return `${minus}${whole}${isWhole ? '' : `.${number.slice(last + 1)}`}`
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

/**
 * The list, or a list of the parts of a text, or of the value itself. Semicolons separate what has commas of its own:
 * `1,50; 2,50`, `Doe, Jane; Roe, Rick`. A text that is a list in JSON has its items.
 */
export function toList(value: JsonValue): readonly JsonValue[] {
  if (value === null) throw new Error('null is no list')
  if (typeof value !== 'string') return Array.isArray(value) ? value : [value]
  const items = isLikeJsonList(value) ? parseItems(value) : undefined
  if (items) return items
  const parts = value.includes(';') ? /[^;\s][^;]*/g : /[^,\s][^,]*/g
  return Array.from(value.matchAll(parts), ([part]) => part.trimEnd())
}

/** Whether the text begins like a list in JSON. */
export function isLikeJsonList(text: string): boolean {
  return /^\s*\[/.test(text)
}

/** The items of a list in JSON; undefined for a text that is none. */
function parseItems(text: string): JsonValue[] | undefined {
  let items: JsonValue[]
  try {
    items = JSON.parse(text) as JsonValue[]
  } catch {
    return undefined
  }
  if (items.some((item) => item === null || typeof item === 'object')) {
    throw new Error(`${describeValue(text)} is a list in JSON whose items are not all texts, numbers or booleans`)
  }
  const inexact = findInexactNumber(text)
  if (inexact !== undefined) throw new Error(`${inexact} has more digits than a number keeps`)
  return items
}

/** The date of an ISO 8601 date or time as it is written there. Other notations can be read in several ways. */
export function toDate(value: JsonValue): string {
  const date = typeof value === 'string' ? readIsoDate(value.trim()) : undefined
  if (date !== undefined) return date
  throw new Error(`${describeValue(value)} is no date such as 2026-01-31`)
}
