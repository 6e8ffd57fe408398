import { PAYLOAD_MAX_DEPTH } from '@workflow-service/contract'
import { toStorableText } from '../../storable-text.ts'
import { type DateKind, parseDate } from './convert-date.ts'
import { splitMeasure } from './name-unit.ts'
import { toWords } from './name-words.ts'
import { type DecimalSeparator, parseNumber, toExactNumber } from './convert-number.ts'
import { type ContextObject, type ContextValue, isContextObject, NumberText, RepeatedValue } from './context-value.ts'

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

/** What the example shows of a text field. */
export interface TextKind {
  readonly date: DateKind | undefined
  readonly isEmail: boolean
  /** Whether its times have seconds. */
  readonly hasSeconds: boolean
  /** Whether dates are written as 31.01.2026. */
  readonly isPointDate: boolean
}

const EMAIL = /[^\s<>()[\]:;,"']{1,64}@[^\s<>()[\]:;,"'@]{1,190}\.[\p{L}\p{N}-]{2,}/gu

/** An address alone, with the name of its owner before it, or as a link: no text that says whose it is. */
const EMAIL_FORM = /^(?:[^@()]{0,100}<[^<>]*>|\[[^[\]]*\]\([^()]*\)|(?:mailto:)?\S*)(?:[,;]\s*\S*@\S*)*$/iu

export function isEmail(text: string): boolean {
  return text.length <= 320 && text.match(EMAIL)?.[0] === text
}

/** Text for a field whose example is a date or an email address: the date in ISO 8601, the only address in the text. */
export function toTextLike(
  value: ContextValue,
  { date: isoDate, isEmail: wantsEmail, hasSeconds, isPointDate }: TextKind,
): Conversion {
  if (isStructure(value) && !isPlainList(value)) return { error: `${describeValue(value)} is not a text` }
  const text = toText(value)
  const date = isPointDate ? 'date' : isoDate
  if (date !== undefined) {
    const parsed = parseDate(text, date, { hasSeconds })
    if (parsed === undefined && isPointDate) return { value: text }
    return parsed === undefined
      ? { error: `${describeValue(value)} is not one clear ${DATE_NAMES[date]}` }
      : { value: isPointDate ? parsed.split('-').toReversed().join('.') : parsed }
  }
  if (!wantsEmail) return { value: text }
  if (!EMAIL_FORM.test(text.slice(0, 1_000).trim()))
    return { error: `${describeValue(value)} is not one email address` }
  const addresses = [...new Set(text.length <= 1_000 ? text.match(EMAIL) : [])]
  const [address] = addresses
  if (address === undefined || addresses.length > 1) {
    return { error: `${describeValue(value)} is not one email address` }
  }
  return { value: address }
}

const DATE_NAMES: Record<DateKind, string> = {
  date: 'date',
  'local time': 'date with a time',
  instant: 'date with a time and its zone',
}

/** What decides how a number is read. */
export interface NumberKind {
  /** The separator that the text's other numbers have. */
  readonly decimal?: DecimalSeparator | undefined
  /** Whether the example is between 0 and 1: "75 %" may be 0.75 there. */
  readonly isFraction?: boolean
  /** Whether the field's name says that it holds cents. */
  readonly isCents?: boolean
  /** The units of measure in the field's name: "3 kg" is 3 for `weight_kg`. */
  readonly units?: readonly string[]
  /** The words of the field's name. */
  readonly names?: readonly string[]
}

export function toNumber(
  value: ContextValue,
  { decimal, isFraction, isCents, units = [], names = [] }: NumberKind = {},
): Conversion {
  if (value instanceof NumberText) return explain(value, toExactNumber(value.source))
  if (typeof value !== 'string') return { error: `${describeValue(value)} is not a number` }
  const measure = units.length > 0 ? splitMeasure(value) : undefined
  const isOwn = measure !== undefined && measure.unit !== 'percent' && units.includes(measure.unit)
  // "3 nights" for `nights`
  const counted = /^(?<number>\d{1,6})\s(?<name>\p{L}{2,30})$/u.exec(value.trim())?.groups
  const isNamed = counted !== undefined && names.includes(toWords(counted['name'] ?? ''))
  const number = isNamed ? counted['number'] : isOwn ? measure.number : value
  const parsed = parseNumber(number ?? value, decimal)
  if ('error' in parsed) return explain(value, parsed)
  if (parsed.isPercent && isFraction) return { error: `${describeValue(value)} may be a share of 1 or of 100` }
  if (isCents && (parsed.hasCurrency || !Number.isInteger(parsed.value))) {
    return { error: `${describeValue(value)} may be in cents or not` }
  }
  return { value: parsed.value }
}

const NUMBER_ERRORS = {
  'not a number': 'is not a number',
  ambiguous: 'has a separator of thousands or of decimals',
  inexact: 'has more digits than a number keeps',
  'too large': 'is too large for a number',
}

function explain(value: ContextValue, result: number | { error: keyof typeof NUMBER_ERRORS }): Conversion {
  return typeof result === 'number'
    ? { value: result }
    : { error: `${describeValue(value)} ${NUMBER_ERRORS[result.error]}` }
}

const YES = new Set([
  'true',
  'yes',
  'y',
  'on',
  '1',
  'ja',
  'wahr',
  'oui',
  'si',
  'sí',
  'x',
  '[x]',
  '[✓]',
  '✓',
  '✔',
  '✔️',
  '☑',
  '☑️',
  '☒',
  '✅',
  'checked',
  'はい',
  '有',
  'あり',
  '有り',
  '○',
  '〇',
  '是',
  '要',
  '必要',
  '希望する',
  '希望します',
  '同意する',
  '同意します',
])
const NO = new Set([
  'false',
  'no',
  'n',
  'off',
  '0',
  'nein',
  'falsch',
  'non',
  '✗',
  '✘',
  '✖',
  '☐',
  '❌',
  '[]',
  '[ ]',
  'unchecked',
  'いいえ',
  '無',
  'なし',
  '無し',
  '×',
  '否',
  '不要',
  '希望しない',
  '希望しません',
  '同意しない',
  '同意しません',
])

/** "Yes, please" is "yes". */
const POLITE = /(?:,?\s(?:please|thanks|thank you|of course|bitte|gerne?|danke|natürlich)){0,2}[.!。]?$/u

export function toBoolean(value: ContextValue): Conversion {
  const [plain, ...others] = Array.isArray(value) ? value : [value]
  const text = plain === undefined || others.length > 0 || isStructure(plain) ? '' : toText(plain)
  const word = text.length <= 30 ? text.normalize('NFC').trim().toLowerCase().replace(POLITE, '') : ''
  if (YES.has(word)) return { value: true }
  if (NO.has(word)) return { value: false }
  return { error: `${describeValue(value)} is neither true nor false` }
}

/** Whether the text says that there is no value: "n/a", "-". */
export function isAbsent(value: ContextValue): boolean {
  return (
    typeof value === 'string' &&
    /^(?:|[-–—]{1,3}|-\/-|n\/?a|n\.\s?a\.|not applicable|none|null|nil|k\.\s?a\.|keine?[nrs]?|keine angabe|entfällt|未定義|なし|無し|特に(?:なし|無し)|該当(?:なし|無し))$/iu.test(
      value.trim(),
    )
  )
}

/** Splits `a, b` or, if there is a semicolon, `a; b` into its parts. */
export function splitText(text: string): string[] {
  return listParts(text, text.includes(';') ? ';' : /[,、]/u)
}

/** Splits a text into lines, or `a; b`, `a | b`, `a, b` or `a / b` into its parts: by the first of these that it has. */
export function splitItems(text: string): string[] {
  const separator = ['\n', ';', /[|｜]/u, /[,、，]/u, /\s[/／]\s/u].find((each) => text.search(each) !== -1) ?? ','
  // "red, blue, and green"
  return listParts(text, separator).map((part, index) => (index > 1 ? part.replace(/^(?:and|und|&)\s/iu, '') : part))
}

function listParts(text: string, separator: string | RegExp): string[] {
  return text
    .split(separator)
    .map((part) => part.trim())
    .filter((part) => part !== '')
}

/** Whether a text may be one item of a list or several: "red and blue", "red, dark blue and green", "red/blue", "赤・青". */
export function isUnclearList(text: string): boolean {
  if (text.length > 200 || /[\n;|]/.test(text)) return false
  const parts = splitItems(text)
  return (
    /\s(?:and|und|&)\s/iu.test(parts.length > 1 ? (parts.at(-1) ?? '') : text) ||
    (parts.length === 1 && /^\p{L}+(?:[/・／]\p{L}+)+$/u.test(text))
  )
}

/**
 * The value as JSON, for a field whose type the example leaves open; `depth` is the number of levels above it. Calls
 * `countValue` for each value.
 */
export function toJson(value: ContextValue, depth: number, countValue: () => void): Conversion {
  countValue()
  if (typeof value === 'string') return { value: toText(value) }
  if (value instanceof RepeatedValue) return toJson([...value.values], depth, countValue)
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
  if (value instanceof RepeatedValue) return value.values.slice(0, 3).map(describeValue).join(' and ')
  if (isStructure(value)) return Array.isArray(value) ? 'a list' : 'an object'
  const text = typeof value === 'string' ? toText(value.slice(0, 50)) : toText(value)
  return JSON.stringify(text.length > 40 ? `${text.slice(0, 40).toWellFormed()}…` : text)
}

function isStructure(value: ContextValue): value is ContextValue[] | ContextObject {
  return Array.isArray(value) || isContextObject(value)
}

function isPlainList(value: ContextValue): boolean {
  return (
    Array.isArray(value) &&
    value.every((item) => typeof item !== 'object' || item === null || item instanceof NumberText)
  )
}
