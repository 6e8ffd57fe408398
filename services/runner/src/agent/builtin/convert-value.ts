import { truncateText } from '@workflow-service/contract'
import { isExactNumber } from '../exact-number.ts'
import { type ContextValue, NumberText } from './read-context.ts'

/** The value in JSON, or why there is none. The error completes "quantity: …". */
export type Conversion<Value> = { readonly value: Value } | { readonly error: string }

/** A plain decimal: `12`, `-3.50`. A leading zero (`007`) is part of a code, not of a number. */
const DECIMAL = /^-?(?:0|[1-9]\d*)(?:\.\d+)?$/

const BOOLEANS: Readonly<Record<string, boolean>> = { true: true, yes: true, false: false, no: false }

/** A number of JSON, or a text that is a plain decimal, if a double keeps all of its digits. */
export function toNumber(value: ContextValue): Conversion<number> {
  const source = value instanceof NumberText ? value.source : value
  if (typeof source !== 'string' || !(value instanceof NumberText || DECIMAL.test(source))) {
    return { error: `${describeValue(value)} is no number such as 12 or -3.50` }
  }
  if (!isExactNumber(source)) return { error: `${describeValue(value)} has more digits than a number keeps` }
  return { value: Number(source) }
}

/** A boolean of JSON, or a text that is true, false, yes or no, in any case. */
export function toBoolean(value: ContextValue): Conversion<boolean> {
  const word = typeof value === 'string' ? value.toLowerCase() : ''
  const boolean = Object.hasOwn(BOOLEANS, word) ? BOOLEANS[word] : value
  if (typeof boolean === 'boolean') return { value: boolean }
  return { error: `${describeValue(value)} is not true, false, yes or no` }
}

/** The value in the words of an error, shortened. */
export function describeValue(value: ContextValue): string {
  if (Array.isArray(value)) return 'a list'
  if (value instanceof NumberText) return truncateText(value.source, 60)
  if (typeof value === 'object' && value !== null) return 'an object'
  return truncateText(JSON.stringify(value), 60)
}
