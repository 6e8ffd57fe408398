/** The separator before the decimals, where the text leaves no doubt about it. */
export type DecimalSeparator = '.' | ','

/** A number as text, taken apart. */
export type ParsedNumber =
  | { readonly value: number; readonly isPercent: boolean; readonly hasCurrency: boolean }
  | { readonly error: 'not a number' | 'ambiguous' | 'inexact' | 'too large' }

/** Longer texts are no numbers. Without a limit, 500 fields of one name would read a long text 500 times. */
const MAX_LENGTH = 100

const CURRENCIES = new Set(Intl.supportedValuesOf('currency'))
const CURRENCY_WORDS = /^(?:euros?|dollars?|(?:us|au|ca|nz|hk|a|c)\$|fr\.?|sfr\.?|kr\.?|zł|円|元|ドル|ユーロ)$/iu
const THREE_DECIMALS = new Set(['BHD', 'IQD', 'JOD', 'KWD', 'LYD', 'OMR', 'TND'])

/** Words for a number of things, which say nothing more. Units of measure are not among them: kg is not g. */
const COUNTED =
  /^(?:persons?|people|personen|pax|pcs?\.?|pieces?|units?|items?|x|stk\.?|stück|mal|個|本|枚|件|名|人|台|箱|冊|点)$/iu

/** A remark that the tax is included, which changes nothing about a price: "(incl. VAT)", "inkl. 19 % MwSt.", "（税込）". */
const TAX_INCLUDED =
  /\s*(?:\((?:incl(?:\.|uding|usive of)?|inkl(?:\.|usive)?)\s[^()]{0,15}(?:vat|tax|taxes|gst|mwst\.?|ust\.?)\)|\s(?:incl(?:\.|uding)?|inkl(?:\.|usive)?)\s(?:\d{1,2}(?:[.,]\d)?\s?%\s)?(?:vat|tax|taxes|gst|mwst\.?|ust\.?)|[(（]?税込み?[)）]?)$/iu

/** Whether the word says only that things are counted: "pcs". */
export function isCounted(word: string): boolean {
  return COUNTED.test(word.trim())
}

const PERCENT = /^(?:%|percent|prozent|パーセント)$/iu

/** Text around the digits: a currency before, and a currency, a percent sign or a counted thing after. */
const NUMBER =
  /^(?<before>[\p{Sc}\p{L}.$]{0,6}?)\s*(?:(?<sign>[+\-−])\s*(?<before2>\p{Sc}?))?\s*(?<digits>\d[\d.,'’\s]*)(?:[.,][-–—]{1,2})?\s*(?<after>%|[\p{Sc}\p{L}.$]{1,8})?$/u

/**
 * Reads a number from text: `1.234,56 €`, `$1,234.56`, `75 %`, `12 pcs`. A single separator before three digits
 * (`1,234`) is ambiguous; it separates thousands if there is a currency, or as `decimal` says, the separator of the text's
 * other numbers. A number with more digits than a double keeps is an error, never rounded.
 */
export function parseNumber(text: string, decimal?: DecimalSeparator): ParsedNumber {
  if (text.length > MAX_LENGTH) return { error: 'not a number' }
  const groups = NUMBER.exec(withLeadingZero(text.normalize('NFKC').trim().replace(TAX_INCLUDED, '')))?.groups
  if (!groups) return { error: 'not a number' }
  const { before = '', before2 = '', sign = '', digits = '', after = '' } = groups
  const currency = [before, before2, after].filter((part) => part !== '' && isCurrency(part))
  const isPercent = PERCENT.test(after)
  if (before !== '' && !isCurrency(before)) return { error: 'not a number' }
  if (after !== '' && !isPercent && !isCurrency(after) && !COUNTED.test(after)) return { error: 'not a number' }
  if (!areOneCurrency(currency)) return { error: 'not a number' }
  const plain = toPlain(digits.trim(), currency[0], decimal)
  // "01067" is a postal code or an identifier, and no number.
  if (plain === undefined || /^0\d{2,}/.test(plain)) return { error: 'not a number' }
  if (plain === AMBIGUOUS) return { error: 'ambiguous' }
  const exact = toExactNumber(`${sign === '-' || sign === '−' ? '-' : ''}${plain}`)
  return typeof exact === 'number' ? { value: exact, isPercent, hasCurrency: currency.length > 0 } : exact
}

/** ".5" is 0.5. */
function withLeadingZero(text: string): string {
  return text.replace(/^([+\-−]?)(?=\.\d+\s?%?$)/u, '$10')
}

/** Whether the marks name one currency at most: `$5 USD` and `5 €`, not `$5 EUR`. */
function areOneCurrency([first, second, ...others]: readonly string[]): boolean {
  if (first === undefined || second === undefined) return true
  const codes = [first, second].map((mark) => codeOf(mark) ?? mark)
  return others.length === 0 && (codes[0] === codes[1] || (codes[0] === '$' && /^[A-Z]{2}D$/.test(codes[1] ?? '')))
}

function isCurrency(text: string): boolean {
  return CURRENCIES.has(text) || /^\p{Sc}$/u.test(text) || CURRENCY_WORDS.test(text)
}

/** The currency in a text such as `5 EUR` or `€5`, as its code; undefined if there is none, or it has no single code. */
export function findCurrency(text: string): string | undefined {
  return hasCurrency(text) ? codeOf(text) : undefined
}

function codeOf(text: string): string | undefined {
  return CODES.find(([pattern]) => pattern.test(text.normalize('NFKC')))?.[1] ?? codeIn(text)
}

/** The code of the only currency that the text names: of `EUR`, `€`, `Euro`, `US Dollar (USD)`; undefined for `$`. */
export function toCurrencyCode(text: string): string | undefined {
  if (text.length > MAX_LENGTH) return undefined
  const plain = text.normalize('NFKC').trim()
  const codes = [...new Set(plain.toUpperCase().match(/(?<![A-Z])[A-Z]{3}(?![A-Z])/g))].filter((code) =>
    CURRENCIES.has(code),
  )
  if (codes.length > 0) return codes.length === 1 ? codes[0] : undefined
  return /^(?:us[- ]?dollars?|米ドル)$/iu.test(plain)
    ? 'USD'
    : isCurrency(plain) || /^日本円$/u.test(plain)
      ? codeOf(plain)
      : undefined
}

/** Whether the text is an amount with a currency, also with one that several countries share: `$5`. */
export function hasCurrency(text: string): boolean {
  const parsed = parseNumber(text, '.')
  return !('error' in parsed) && parsed.hasCurrency
}

function codeIn(text: string): string | undefined {
  const code = /[A-Z]{3}/.exec(text.normalize('NFKC'))?.[0]
  return code !== undefined && CURRENCIES.has(code) ? code : undefined
}

/** Symbols and words that name one currency. "$", "¥" and "kr" do not. */
const CODES: readonly (readonly [RegExp, string])[] = [
  [/€|euro|ユーロ/iu, 'EUR'],
  [/£/u, 'GBP'],
  [/円/u, 'JPY'],
  [/us\$/iu, 'USD'],
  [/ca?\$/iu, 'CAD'],
  [/au?\$/iu, 'AUD'],
  [/nz\$/iu, 'NZD'],
  [/hk\$/iu, 'HKD'],
  [/s?fr(?:\.|(?![a-z]))/iu, 'CHF'],
  [/zł/u, 'PLN'],
  [/元/u, 'CNY'],
  [/₹/u, 'INR'],
  [/₩/u, 'KRW'],
]

const AMBIGUOUS = '?'

/** Digits with a point before the decimals and nothing else; AMBIGUOUS if they have two readings; undefined if the separators contradict each other. */
function toPlain(
  text: string,
  currency: string | undefined,
  decimal: DecimalSeparator | undefined,
): string | undefined {
  const digits = text.replace(/(?<=\d)['’\s](?=\d{3}(?!\d))/gu, '')
  if (!/^[\d.,]+$/.test(digits) || /[.,]$/.test(digits)) return undefined
  const points = digits.split('.').length - 1
  const commas = digits.split(',').length - 1
  if (points + commas === 0) return digits
  // A space or an apostrophe separates thousands already.
  const isGrouped = digits !== text
  if (points > 0 && commas > 0) {
    const separator = digits.lastIndexOf('.') > digits.lastIndexOf(',') ? '.' : ','
    return isGrouped ? undefined : withDecimals(digits, separator)
  }
  const separator = points > 0 ? '.' : ','
  if (points + commas > 1) return isGrouped ? undefined : withoutGroups(digits, separator)
  const [whole = '', fraction = ''] = digits.split(separator)
  const canBeGroups = fraction.length === 3 && /^[1-9]\d{0,2}$/.test(whole) && !isGrouped
  if (!canBeGroups) return whole === '' ? undefined : `${whole}.${fraction}`
  if (decimal !== undefined) return decimal === separator ? `${whole}.${fraction}` : whole + fraction
  if (currency === undefined || THREE_DECIMALS.has(currency)) return AMBIGUOUS
  // "$1.459" can be a price per gallon; "1.459 €" and "$1,459" have thousands.
  return separator === '.' && !/^(?:EUR|€|euros?)$/i.test(currency) ? AMBIGUOUS : whole + fraction
}

function withDecimals(digits: string, separator: DecimalSeparator): string | undefined {
  const [whole = '', fraction = '', ...others] = digits.split(separator)
  if (others.length > 0) return undefined
  const groups = withoutGroups(whole, separator === '.' ? ',' : '.')
  return groups === undefined ? undefined : `${groups}.${fraction}`
}

function withoutGroups(digits: string, separator: DecimalSeparator): string | undefined {
  const [first = '', ...groups] = digits.split(separator)
  const isValid = /^[1-9]\d{0,2}$/.test(first) && groups.every((group) => group.length === 3)
  return isValid ? first + groups.join('') : undefined
}

/** The separator that a number shows beyond doubt: it has both, or one before one or two digits. */
export function decimalSeparatorOf(text: string): DecimalSeparator | undefined {
  const plain = text.length > MAX_LENGTH ? '' : text.normalize('NFKC').trim().replace(TAX_INCLUDED, '')
  const groups = NUMBER.exec(plain)?.groups
  const digits = groups?.['digits']?.trim() ?? ''
  if ('error' in parseNumber(text)) return undefined
  const match = /([.,])\d{1,2}$/.exec(digits)
  if (match) return match[1] as DecimalSeparator
  const repeated = /^\d{1,3}(?:([.,])\d{3}){2,}$/.exec(digits)
  return repeated ? (repeated[1] === ',' ? '.' : ',') : undefined
}

/** The number, if a double keeps all of its digits. `text` is a JSON number. */
export function toExactNumber(text: string): number | { error: 'inexact' | 'too large' | 'not a number' } {
  const value = Number(text)
  if (Number.isNaN(value)) return { error: 'not a number' }
  if (!Number.isFinite(value)) return { error: 'too large' }
  if (text.length > 400 || canonical(text) !== canonical(String(value))) return { error: 'inexact' }
  return value === 0 ? 0 : value
}

/** Significant digits and exponent, which are equal for 1.50, 15e-1 and 1.5. */
function canonical(number: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^([+-]?)(\d+)(?:\.(\d*))?(?:[eE]([+-]?\d+))?$/.exec(number) ?? []
  const digits = `${whole}${fraction}`.replace(/^0+/, '')
  let end = digits.length
  while (digits[end - 1] === '0') end -= 1
  const significant = digits.slice(0, end)
  if (significant === '') return '0'
  return `${sign === '-' ? '-' : ''}${significant}e${Number(exponent) - fraction.length + digits.length - significant.length}`
}
