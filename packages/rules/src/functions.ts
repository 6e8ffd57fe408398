import { type CelFunc, celFunc, celList, CelScalar, isCelList, listType, type CelValue } from '@bufbuild/cel'
import type { Evaluation, RuleConversions } from './evaluation.ts'
import { type JsonValue, toJson } from './to-json.ts'

const { BOOL, DOUBLE, DYN, INT, STRING } = CelScalar
const LIST = listType(DYN)

/** Creates the functions of rules beyond those of CEL (docs/rules.md, "Functions"). */
export function createFunctions(
  evaluation: () => Evaluation,
  capture: (text: string, pattern: string) => string | undefined,
): CelFunc[] {
  const json = (value: CelValue): JsonValue => toJson(value, evaluation().meter)
  const conversions = (): RuleConversions => {
    const { conversions: all, meter } = evaluation()
    meter.charge(500)
    return all
  }
  const texts = (list: CelValue): string[] => {
    const items = isCelList(list) ? Array.from(list) : []
    return items.map((item) => conversions().text(json(item)))
  }
  const built = (length: number): void => evaluation().meter.chargeText(length)
  return [
    celFunc('number', [DYN], DOUBLE, (value) => conversions().number(json(value))),
    celFunc('text', [DYN], STRING, (value) => conversions().text(json(value))),
    celFunc('date', [DYN], STRING, (value) => conversions().date(json(value))),
    celFunc('yes', [DYN], BOOL, (value) => conversions().yes(json(value))),
    celFunc('list', [DYN], LIST, (value) => celList(conversions().list(json(value)) as JsonValue[])),
    celFunc('round', [DOUBLE], INT, (number) => toInt(roundTo(number, 0))),
    celFunc('round', [DOUBLE, INT], DOUBLE, (number, digits) => roundTo(number, Number(digits))),
    celFunc('sum', [LIST], DOUBLE, (list) => sum(Array.from(list, (item) => conversions().number(json(item))))),
    celFunc('lower', [STRING], STRING, (text) => text.toLowerCase()),
    celFunc('upper', [STRING], STRING, (text) => text.toUpperCase()),
    celFunc('trim', [STRING], STRING, (text) => text.trim()),
    celFunc('replace', [STRING, STRING, STRING], STRING, (text, from, to) => {
      if (from === '') throw new Error('replace needs a text to look for')
      const parts = text.split(from)
      built(text.length + (parts.length - 1) * to.length)
      return parts.join(to)
    }),
    celFunc('substring', [STRING, INT], STRING, (text, from) => substring(text, Number(from))),
    celFunc('substring', [STRING, INT, INT], STRING, (text, from, to) => substring(text, Number(from), Number(to))),
    celFunc('capture', [STRING, STRING], STRING, (text, pattern) => {
      const found = capture(text, pattern)
      if (found === undefined) throw new Error(`${JSON.stringify(text.slice(0, 60))} has nothing that matches`)
      return found
    }),
    celFunc('todo', [STRING], DYN, (what) => {
      throw new Error(`this is still open: ${what}`)
    }),
    celFunc('split', [STRING, STRING], LIST, (text, separator) => {
      evaluation().meter.charge(text.length)
      return celList(text.split(separator))
    }),
    celFunc('join', [LIST, STRING], STRING, (list, separator) => {
      const parts = texts(list)
      built(parts.reduce((length, part) => length + part.length + separator.length, 0))
      return parts.join(separator)
    }),
  ]
}

/** Adds decimal numbers as they are written: the sum of 0.1 and 0.2 is 0.3. */
function sum(numbers: readonly number[]): number {
  const digits = Math.max(0, ...numbers.map((number) => (/\.(\d+)$/.exec(String(number))?.[1] ?? '').length))
  return shift(
    numbers.reduce((total, number) => total + Math.round(shift(number, digits)), 0),
    -digits,
  )
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
