import type { FieldError } from '../errors.ts'
import { parseWithSource } from './parse-json.ts'

/** The error of a field whose JSON text has such a number. */
export function findInexactNumberErrors(text: string, field: string): FieldError[] {
  const number = findInexactNumber(text)
  if (number === undefined) return []
  const message = `contains the number ${number}, which cannot be represented exactly: shorten it, or write it as a string`
  return [{ field, code: 'inexact_number', message }]
}

/**
 * Finds the first number of a JSON text that JavaScript cannot represent exactly, such as an id of 20 digits or 1e400:
 * the service would send another number. Returns undefined if there is none. The text must be valid JSON.
 */
export function findInexactNumber(text: string): string | undefined {
  // Numbers of up to 15 digits without fraction and exponent are always exact.
  if (!/\d{16}|\d[eE]|\d\.\d/.test(text)) return undefined
  let found: string | undefined
  // Browsers of before 2025 give no context.
  parseWithSource(text, (_key, value, context?: { readonly source?: string }) => {
    const source = context?.source
    if (found === undefined && typeof value === 'number' && source !== undefined && !isExact(source, value)) {
      found = source.slice(0, 40)
    }
    return undefined
  })
  return found
}

/** A longer number says nothing more than zeros, and removing a million zeros with a pattern takes minutes. */
const MAX_NUMBER_LENGTH = 400

function isExact(source: string, value: number): boolean {
  return (
    Number.isFinite(value) &&
    source.length <= MAX_NUMBER_LENGTH &&
    canonicalNumber(source) === canonicalNumber(String(value))
  )
}

/** Returns significant digits and exponent, which are equal for 1.50, 15e-1 and 1.5. */
export function canonicalNumber(number: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(number) ?? []
  const digits = `${whole}${fraction}`.replace(/^0+/, '')
  // Not /0+$/: in a number such as 1.0…01 it takes quadratic time, an hour for one of 1 MiB.
  let end = digits.length
  while (digits[end - 1] === '0') end -= 1
  const significant = digits.slice(0, end)
  if (significant === '') return '0'
  return `${sign}${significant}e${Number(exponent) - fraction.length + digits.length - significant.length}`
}
