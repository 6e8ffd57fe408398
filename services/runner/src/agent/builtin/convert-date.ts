/** What the example shows of a field: a date, or a date with a time, in the notation of ISO 8601. */
export type DateKind = 'date' | 'local time' | 'instant'

const ISO = /^(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:\.\d{1,9})?)?(Z|[+-]\d{2}:?\d{2})?)?$/

const MONTHS = [
  ['january', 'jan', 'januar', 'jänner'],
  ['february', 'feb', 'februar'],
  ['march', 'mar', 'märz', 'mär', 'maerz', 'mrz'],
  ['april', 'apr'],
  ['may', 'mai'],
  ['june', 'jun', 'juni'],
  ['july', 'jul', 'juli'],
  ['august', 'aug'],
  ['september', 'sep', 'sept'],
  ['october', 'oct', 'oktober', 'okt'],
  ['november', 'nov'],
  ['december', 'dec', 'dezember', 'dez'],
]
const MONTH_NUMBERS = new Map(MONTHS.flatMap((names, index) => names.map((name) => [name, index + 1] as const)))

/** A day of the week before a date, which says nothing more. */
const WEEKDAY =
  /^(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch|sonnabend|mon|tue|wed|thu|fri|sat|sun|mo|di|mi|do|fr|sa|so)\.?,?\s+/iu

/** Which date an example shows; undefined if it is no date in the notation of ISO 8601. */
export function dateKindOf(example: string): DateKind | undefined {
  const match = example.length <= 40 ? ISO.exec(example) : null
  if (!match || !isDate(Number(match[1]), Number(match[2]), Number(match[3]))) return undefined
  if (match[4] === undefined) return 'date'
  return match[7] === undefined ? 'local time' : 'instant'
}

/**
 * Reads a date that has one reading only, in the notation of ISO 8601: `4 March 2026`, `4. März 2026`, `13/04/2026`,
 * `04.03.2026`, `2026年3月4日`. Undefined for any other text, such as `03/04/2026`, a date without a year or with two of its
 * digits, or one that lacks the time or the time zone of the example.
 */
export function parseDate(fullText: string, kind: DateKind): string | undefined {
  if (fullText.length > 60) return undefined
  const text = fullText.normalize('NFKC').trim()
  const iso = ISO.exec(text)
  if (iso) {
    const [, year = '', month = '', day = '', hour, minute = '', second = '00', zone] = iso
    if (!isDate(Number(year), Number(month), Number(day)) || !isTime(hour, minute, second)) return undefined
    const date = `${year}-${month}-${day}`
    if (kind === 'date') return hour === undefined || `${hour}${minute}${second}` === '000000' ? date : undefined
    if (hour === undefined || (kind === 'instant') !== (zone !== undefined)) return undefined
    return text.replace(' ', 'T')
  }
  if (kind === 'date') return readDay(text)
  if (kind === 'instant') return undefined
  const time = /^(?<day>.{6,40}?)(?:,|\s+at|\s+um)?\s+(?<hour>\d{1,2}):(?<minute>\d{2})(?:\s*Uhr)?$/u.exec(text)?.groups
  const day = time && readDay(time['day'] ?? '')
  const hour = (time?.['hour'] ?? '').padStart(2, '0')
  const minute = time?.['minute'] ?? ''
  return day !== undefined && isTime(hour, minute, '00') ? `${day}T${hour}:${minute}:00` : undefined
}

/** Reads a day without a time. */
function readDay(fullText: string): string | undefined {
  const weekday = WEEKDAY.exec(fullText)?.[0] ?? ''
  const day = readPlainDay(fullText.slice(weekday.length).trim())
  // "Tuesday, 4 March 2026" was a Wednesday.
  const expected = weekday === '' ? -1 : WEEKDAYS.findIndex((names) => names.test(weekday))
  return day !== undefined && expected !== -1 && new Date(`${day}T00:00:00Z`).getUTCDay() !== expected ? undefined : day
}

const WEEKDAYS = [
  /^(?:su|so(?!nnabend))/iu,
  /^mo/iu,
  /^(?:tu|di)/iu,
  /^(?:we|mi)/iu,
  /^(?:th|do)/iu,
  /^fr/iu,
  /^(?:sa|sonnabend)/iu,
]

function readPlainDay(text: string): string | undefined {
  const numbers = /^(\d{1,4})\s?([./-])\s?(\d{1,2})\s?\2\s?(\d{1,4})\.?$/.exec(text)
  if (numbers) {
    const [, first = '', separator, second = '', third = ''] = numbers
    if (first.length === 4) return format(first, second, third)
    if (third.length !== 4) return undefined
    // Points are used where the day comes first; other separators in both orders.
    if (separator === '.') return format(third, second, first)
    const dayFirst = format(third, second, first)
    const monthFirst = format(third, first, second)
    return dayFirst === monthFirst || monthFirst === undefined
      ? dayFirst
      : dayFirst === undefined
        ? monthFirst
        : undefined
  }
  const japanese = /^(\d{4})\s?年\s?(\d{1,2})\s?月\s?(\d{1,2})\s?日(?:\s?\([月火水木金土日]\))?$/u.exec(text)
  if (japanese) return format(japanese[1], japanese[2], japanese[3])
  const dayFirst = /^(\d{1,2})(?:st|nd|rd|th|\.)?\s?(?:of\s)?[\s-]?(\p{L}{3,9})\.?[,\s-]\s?(\d{4})$/u.exec(text)
  if (dayFirst) return format(dayFirst[3], monthOf(dayFirst[2]), dayFirst[1])
  const monthFirst = /^(\p{L}{3,9})\.?\s(\d{1,2})(?:st|nd|rd|th)?,?\s(\d{4})$/u.exec(text)
  if (monthFirst) return format(monthFirst[3], monthOf(monthFirst[1]), monthFirst[2])
  return undefined
}

function monthOf(name = ''): string {
  return String(MONTH_NUMBERS.get(name.toLowerCase()) ?? '')
}

function format(year = '', month = '', day = ''): string | undefined {
  if (year.length !== 4 || !isDate(Number(year), Number(month), Number(day))) return undefined
  return `${year}-${month.padStart(2, '0')}-${day.padStart(2, '0')}`
}

function isDate(year: number, month: number, day: number): boolean {
  const date = new Date(Date.UTC(year, month - 1, day))
  return year > 0 && date.getUTCMonth() === month - 1 && date.getUTCDate() === day
}

function isTime(hour: string | undefined, minute: string, second: string): boolean {
  return hour === undefined || (Number(hour) < 24 && Number(minute) < 60 && Number(second) < 60)
}
