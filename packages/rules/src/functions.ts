import { type CelFunc, celFunc, celList, CelScalar, celUint, listType, objectType, type CelValue } from '@bufbuild/cel'
import { create, fromJson } from '@bufbuild/protobuf'
import { type Timestamp, TimestampSchema } from '@bufbuild/protobuf/wkt'
import { RE2JS } from 're2js'
import { isLikeJsonList, toAmount, toDate, toList, toText, toYes } from './convert-argument.ts'
import { describeValue } from './convert-value.ts'
import { currentMeter } from './evaluation.ts'
import { type JsonValue, toJson } from './to-json.ts'

const { BOOL, DOUBLE, DYN, INT, STRING, UINT } = CelScalar
const LIST = listType(DYN)
const TIMESTAMP = objectType(TimestampSchema)

/** The first and the last second of the years 1 to 9999, the range of timestamps in CEL. */
const [MIN_SECONDS, MAX_SECONDS] = [-62_135_596_800n, 253_402_300_799n]

/**
 * Conversions of CEL in place of the library's, which take an empty text for 0, "abc" for NaN, so that no comparison is
 * true, February 30 for March 2, and the seconds of a Unix time for milliseconds.
 */
const CONVERSIONS: CelFunc[] = [
  celFunc('int', [STRING], INT, (text) => toBigInt(text, (value) => BigInt.asIntN(64, value))),
  celFunc('uint', [STRING], UINT, (text) => celUint(toBigInt(text, (value) => BigInt.asUintN(64, value)))),
  celFunc('double', [STRING], DOUBLE, (text) => {
    if (/^\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?\s*$/i.test(text)) return Number(text)
    throw new Error(`${describeValue(text)} is no number such as 12 or -3.50`)
  }),
  celFunc('timestamp', [STRING], TIMESTAMP, parseTimestamp),
  celFunc('timestamp', [INT], TIMESTAMP, (seconds) => {
    if (seconds >= MIN_SECONDS && seconds <= MAX_SECONDS) return create(TimestampSchema, { seconds })
    throw new Error(`${seconds} is no Unix time in seconds`)
  }),
]

/** The functions of rules beyond those of CEL (docs/rules.md, "Functions"), and conversions of CEL. */
export const FUNCTIONS: CelFunc[] = [
  ...CONVERSIONS,
  celFunc('number', [DYN], DOUBLE, (value) => convert(value, toAmount)),
  celFunc('text', [DYN], STRING, (value) => convert(value, toText)),
  celFunc('date', [DYN], STRING, (value) => convert(value, toDate)),
  celFunc('yes', [DYN], BOOL, (value) => convert(value, toYes)),
  celFunc('list', [DYN], LIST, (value) => {
    // Parsing brackets in brackets takes 100 ns for each.
    if (typeof value === 'string' && isLikeJsonList(value)) currentMeter().charge(value.length * 10)
    const items = convert(value, toList) as JsonValue[]
    currentMeter().charge(items.length * 12)
    return celList(items)
  }),
  celFunc('round', [DOUBLE], INT, (number) => toInt(roundTo(number, 0))),
  celFunc('round', [DOUBLE, INT], DOUBLE, (number, digits) => roundTo(number, Number(digits))),
  celFunc('sum', [LIST], DOUBLE, (list) => sum(Array.from(list, (item) => convert(item, toAmount)))),
  celFunc('lower', [STRING], STRING, (text) => text.toLowerCase()),
  celFunc('upper', [STRING], STRING, (text) => text.toUpperCase()),
  celFunc('trim', [STRING], STRING, (text) => text.trim()),
  celFunc('replace', [STRING, STRING, STRING], STRING, (text, from, to) => {
    if (from === '') throw new Error('replace needs a text to look for')
    const parts = text.split(from)
    currentMeter().charge(parts.length * 12)
    currentMeter().chargeText(text.length + (parts.length - 1) * to.length)
    return parts.join(to)
  }),
  celFunc('substring', [STRING, INT], STRING, (text, from) => substring(text, Number(from))),
  celFunc('substring', [STRING, INT, INT], STRING, (text, from, to) => substring(text, Number(from), Number(to))),
  celFunc('capture', [STRING, STRING], STRING, (text, pattern) => {
    const matcher = compilePattern(pattern).matcher(text)
    const isFound = matcher.find()
    const found = isFound ? matcher.group(Math.min(matcher.groupCount(), 1)) : null
    if (found !== null) return found
    const shown = JSON.stringify(text.slice(0, 60))
    throw new Error(
      isFound ? `what matches in ${shown} has nothing of the first group` : `${shown} has nothing that matches`,
    )
  }),
  celFunc('todo', [STRING], DYN, (what) => {
    throw new Error(`this is still open: ${what}`)
  }),
  celFunc('split', [STRING, STRING], LIST, (text, separator) => celList(text.split(separator))),
  celFunc('join', [LIST, STRING], STRING, (list, separator) => {
    const parts = Array.from(list, (item) => convert(item, toText))
    currentMeter().chargeText(parts.reduce((length, part) => length + part.length + separator.length, 0))
    return parts.join(separator)
  }),
]

function toBigInt(text: string, toRange: (value: bigint) => bigint): bigint {
  const value = /^\s*[+-]?\d+\s*$/.test(text) ? BigInt(text.replace('+', '')) : undefined
  if (value !== undefined && toRange(value) === value) return value
  throw new Error(`${describeValue(text)} is no whole number such as 12`)
}

function parseTimestamp(text: string): Timestamp {
  try {
    toDate(text)
    return fromJson(TimestampSchema, text)
  } catch {
    throw new Error(`${describeValue(text)} is no time such as 2026-01-31T09:00:00Z`)
  }
}

/** Applies a conversion to a value as JSON. */
function convert<Result>(value: CelValue, conversion: (value: JsonValue) => Result): Result {
  currentMeter().charge(500)
  return conversion(toJson(value, currentMeter()))
}

const patterns = new Map<string, RE2JS>()

/** RE2 takes linear time in the text, but also in the size of the pattern, which counted repetitions multiply. */
export function compilePattern(pattern: string): RE2JS {
  const known = patterns.get(pattern)
  if (known) return known
  const compiled = RE2JS.compile(pattern)
  if (patterns.size >= 100) patterns.clear()
  patterns.set(pattern, compiled)
  return compiled
}

/** Adds decimal numbers as they are written, without an error of rounding: the sum of 0.1 and 0.2 is 0.3. */
function sum(numbers: readonly number[]): number {
  const decimals = numbers.map(toDecimal)
  const least = Math.min(0, ...decimals.map(({ exponent }) => exponent))
  const total = decimals.reduce((all, { digits, exponent }) => all + digits * 10n ** BigInt(exponent - least), 0n)
  return Number(`${total}e${least}`)
}

/** The number is `digits` times ten to the power of `exponent`. */
function toDecimal(number: number) {
  const [mantissa = '', exponent = 0] = String(number).split('e')
  const [whole = '', fraction = ''] = mantissa.split('.')
  return { digits: BigInt(whole + fraction), exponent: Number(exponent) - fraction.length }
}

/** The characters (code points) from one position to before another, from 0. */
function substring(text: string, from: number, to?: number): string {
  const characters = Array.from(text)
  const end = to ?? characters.length
  if (from < 0 || end < from || end > characters.length) {
    throw new Error(`a text of ${characters.length} characters has none from ${from} to ${end}`)
  }
  return characters.slice(from, end).join('')
}

/**
 * Rounds half away from zero by the decimal digits of the number as it is written: `round(1.005, 2)` is 1.01, although
 * the nearest double is a little less than 1.005.
 */
function roundTo(number: number, digits: number): number {
  if (!Number.isFinite(number)) throw new Error(`${number} cannot be rounded`)
  if (digits < 0 || digits > 15) throw new Error('a number is rounded to 0 to 15 digits')
  return Math.sign(number) * shift(Math.round(shift(Math.abs(number), digits)), -digits)
}

/** Multiplies by a power of ten without an error of rounding. */
function shift(value: number, places: number): number {
  const [mantissa, exponent = '0'] = String(value).split('e')
  return Number(`${mantissa}e${Number(exponent) + places}`)
}

function toInt(number: number): bigint {
  if (!Number.isSafeInteger(number)) throw new Error(`${number} has more digits than a number keeps`)
  return BigInt(number)
}
