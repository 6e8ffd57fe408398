import { truncateText } from '@workflow-service/contract'
import { canonicalNumber } from '@workflow-service/contract/find-inexact-number'

/** A number as the JSON text has it, so that no digit is lost before it is checked. */
export class NumberText {
  readonly source: string

  constructor(source: string) {
    this.source = source
  }
}

export type ContextValue = string | boolean | null | NumberText | ContextValue[] | ContextObject
export type ContextObject = { [name: string]: ContextValue }

/** The value in JSON, or why there is none. The error completes "quantity: …". */
export type Conversion<Value> = { readonly value: Value } | { readonly error: string }

/** A plain decimal: `12`, `-3.50`. A leading zero (`007`) is part of a code, not of a number. */
const DECIMAL = /^-?(?:0|[1-9]\d*)(?:\.\d+)?$/

const BOOLEANS: Readonly<Record<string, boolean>> = { true: true, yes: true, false: false, no: false }

/** A number, or a text that is a plain decimal, if a double keeps all of its digits. */
export function toNumber(value: unknown): Conversion<number> {
  const isText = typeof value === 'string' && DECIMAL.test(value)
  if (!isText && typeof value !== 'number' && !(value instanceof NumberText)) {
    return { error: `${describeValue(value)} is no number such as 12 or -3.50` }
  }
  const source = value instanceof NumberText ? value.source : String(value)
  return isExactNumber(source)
    ? { value: Number(source) }
    : { error: `${describeValue(value)} has more digits than a number keeps` }
}

/** A boolean of JSON, or a text that is true, false, yes or no, in any case. */
export function toBoolean(value: ContextValue): Conversion<boolean> {
  const word = typeof value === 'string' ? value.toLowerCase() : ''
  const boolean = Object.hasOwn(BOOLEANS, word) ? BOOLEANS[word] : value
  if (typeof boolean === 'boolean') return { value: boolean }
  return { error: `${describeValue(value)} is not true, false, yes or no` }
}

/** The value in the words of an error, shortened. */
export function describeValue(value: unknown): string {
  if (Array.isArray(value)) return 'a list'
  if (value instanceof NumberText) return truncateText(value.source, 60)
  if (typeof value === 'object' && value !== null) return 'an object'
  return truncateText(JSON.stringify(typeof value === 'string' ? value.slice(0, 120) : value), 60)
}

/**
 * Whether a number that was written like this is the same after JSON.parse. Whole numbers beyond the safe integers
 * never are: some APIs parse the arguments before they reach this service, so that the digits that were written are
 * unknown.
 */
export function isExactNumber(source: string): boolean {
  if (FEW_DIGITS.test(source)) return true
  const value = Number(source)
  if (!Number.isFinite(value) || (Number.isInteger(value) && !Number.isSafeInteger(value))) return false
  return canonicalNumber(source) === canonicalNumber(String(value))
}

/** Whether a double does not keep the digits of a decimal number of YAML, such as +1.5, .5, 5. or 1.5e+30. */
export function isRoundedDecimal(source: string): boolean {
  if (source.replaceAll(/\D/g, '').length <= 15) return false
  const number = source
    .replace(/^\+/, '')
    .replace(/^(-?)\./, '$10.')
    .replace(/\.(?!\d)/, '')
  const value = Number(number)
  return !Number.isFinite(value) || canonicalNumber(number) !== canonicalNumber(String(value))
}

/** A double keeps 15 digits of any number. Most numbers have fewer, and need no comparison of their digits. */
const FEW_DIGITS = /^-?(?!.{17})\d{1,15}(?:\.\d+)?$/
