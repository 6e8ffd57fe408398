import { PAYLOAD_MAX_DEPTH } from '@workflow-service/contract'
import { toStorableText } from '../../storable-text.ts'
import { type ContextObject, type ContextValue, isContextObject, NumberText } from './parse-context.ts'

/** A converted value, or why the value cannot be converted. */
export type Conversion = { readonly value: unknown } | { readonly error: string }

/** Text for a text field; a list of plain values is joined by commas, other structures become JSON. */
export function toText(value: ContextValue): string {
  if (typeof value === 'string') return toStorableText(value)
  if (value instanceof NumberText) return value.source
  if (Array.isArray(value) && value.every((item) => typeof item !== 'object' || item instanceof NumberText)) {
    return value.map(toText).join(', ')
  }
  return toText(
    JSON.stringify(value, (_name, item: unknown) => (item instanceof NumberText ? Number(item.source) : item)),
  )
}

/** A number, optionally with a currency: `$ 12.50`, `12.50 EUR`. No thousands separators, since `1,234` is ambiguous. */
const NUMBER = /^(?:\p{Sc}|[A-Z]{3})?\s*(?<number>[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)\s*(?:\p{Sc}|[A-Z]{3})?$/u

/** Longer texts are neither a number nor a boolean. Without a limit, 500 fields of one name would read a long text 500 times. */
const MAX_SCALAR_LENGTH = 1_000

export function toNumber(value: ContextValue): Conversion {
  const text = value instanceof NumberText ? value.source : value
  const isCandidate = typeof text === 'string' && text.length <= MAX_SCALAR_LENGTH
  const digits = isCandidate ? NUMBER.exec(text.trim())?.groups?.['number'] : undefined
  if (digits === undefined) return { error: `${describeValue(value)} is not a number` }
  const number = Number(digits)
  if (!Number.isFinite(number)) return { error: `${describeValue(value)} is too large for a number` }
  if (Number.isInteger(number) && !Number.isSafeInteger(number) && /^[+-]?\d+$/u.test(digits)) {
    return { error: `${describeValue(value)} has more digits than a number keeps` }
  }
  return { value: number === 0 ? 0 : number }
}

export function toBoolean(value: ContextValue): Conversion {
  const [plain, ...others] = Array.isArray(value) ? value : [value]
  const text = plain === undefined || others.length > 0 || isStructure(plain) ? '' : toText(plain)
  const word = text.length <= MAX_SCALAR_LENGTH ? text.trim().toLowerCase() : ''
  if (['true', 'yes', 'y', 'on', '1'].includes(word)) return { value: true }
  if (['false', 'no', 'n', 'off', '0'].includes(word)) return { value: false }
  return { error: `${describeValue(value)} is neither true nor false` }
}

/** Splits `a, b` or, if there is a semicolon, `a; b` into its parts. */
export function splitText(text: string): string[] {
  const parts = text.split(text.includes(';') ? ';' : ',').map((part) => part.trim())
  return parts.filter((part) => part !== '')
}

/**
 * The value as JSON, for a field whose type the example leaves open; `depth` is the number of levels above it. Calls
 * `countValue` for each value.
 */
export function toJson(value: ContextValue, depth: number, countValue: () => void): Conversion {
  countValue()
  if (typeof value === 'string') return { value: toText(value) }
  if (value instanceof NumberText) {
    const number = toNumber(value)
    return 'value' in number ? number : { value: value.source }
  }
  if (typeof value !== 'object' || value === null) return { value }
  if (depth >= PAYLOAD_MAX_DEPTH) return { error: `it makes the payload more than ${PAYLOAD_MAX_DEPTH} levels deep` }
  const entries: [string, unknown][] = []
  for (const [name, item] of Object.entries(value)) {
    const json = toJson(item, depth + 1, countValue)
    if ('error' in json) return json
    if (name !== '__proto__') entries.push([toText(name), json.value])
  }
  return { value: Array.isArray(value) ? entries.map(([, item]) => item) : Object.fromEntries(entries) }
}

/** The value for an error message: a text or number in quotes, shortened. */
export function describeValue(value: ContextValue): string {
  if (isStructure(value)) return Array.isArray(value) ? 'a list' : 'an object'
  const text = typeof value === 'string' ? toText(value.slice(0, 50)) : toText(value)
  return JSON.stringify(text.length > 40 ? `${text.slice(0, 40).toWellFormed()}…` : text)
}

function isStructure(value: ContextValue): value is ContextValue[] | ContextObject {
  return Array.isArray(value) || isContextObject(value)
}
