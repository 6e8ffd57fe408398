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

/** How the example writes a date with a time. */
export interface TimeForm {
  readonly hasSeconds: boolean
}

const TIME =
  /^(?<day>.{6,40}?)(?:,|\s+at|\s+um)?\s+(?<hour>\d{1,2})(?::(?<minute>\d{2})(?::(?<second>\d{2}))?|時(?:(?<minute2>\d{1,2})分)?)(?:\s*(?<half>[ap])\.?m\.?)?(?:\s*Uhr)?(?:\s*\(?(?<zone>Z|UTC|GMT|JST|[+-]\d{2}:?\d{2})\)?)?$/iu

/**
 * Reads a date that has one reading only, in the notation of ISO 8601: `4 March 2026`, `4. März 2026`, `13/04/2026`,
 * `04.03.2026`, `2026年3月4日`, with a time where the example has one. Undefined for any other text, such as `03/04/2026`, a
 * date without a year or with two of its digits, or one that lacks the time or the time zone of the example.
 */
export function parseDate(
  fullText: string,
  kind: DateKind,
  { hasSeconds }: TimeForm = { hasSeconds: true },
): string | undefined {
  if (fullText.length > 60) return undefined
  const text = fullText.normalize('NFKC').trim()
  const iso = ISO.exec(text)
  if (iso) {
    const [, year = '', month = '', day = '', hour, minute = '', second = '00', zone] = iso
    if (!isDate(Number(year), Number(month), Number(day)) || !isTime(hour, minute, second)) return undefined
    const date = `${year}-${month}-${day}`
    if (kind === 'date') return hour === undefined || `${hour}${minute}${second}` === '000000' ? date : undefined
    if (hour === undefined || (kind === 'instant') !== (zone !== undefined)) return undefined
    const isShort = iso[6] === undefined && zone === undefined && hasSeconds
    return `${text.replace(' ', 'T')}${isShort ? ':00' : ''}`
  }
  return kind === 'date' ? readDay(text) : readTime(text, kind, hasSeconds)
}

function readTime(text: string, kind: DateKind, hasSeconds: boolean): string | undefined {
  const { day: dayText = '', hour: hourText = '', minute, minute2, second, half, zone } = TIME.exec(text)?.groups ?? {}
  const day = readDay(dayText)
  const hour = half === undefined ? Number(hourText) : (Number(hourText) % 12) + (half.toLowerCase() === 'p' ? 12 : 0)
  if (day === undefined || (half !== undefined && (Number(hourText) < 1 || Number(hourText) > 12))) return undefined
  const time = [String(hour), minute ?? minute2 ?? '0', second ?? '0'].map((part) => part.padStart(2, '0'))
  if (!isTime(time[0], time[1] ?? '', time[2] ?? '') || (kind === 'instant') !== (zone !== undefined)) return undefined
  const shown = hasSeconds || zone !== undefined || time[2] !== '00' ? time : time.slice(0, 2)
  return `${day}T${shown.join(':')}${zone === undefined ? '' : isoZone(zone.toUpperCase())}`
}

/** Only abbreviations that mean one zone, in summer and in winter. */
function isoZone(zone: string): string {
  if (zone === 'JST') return '+09:00'
  return /^[A-Z]/.test(zone) ? 'Z' : `${zone.slice(0, 3)}:${zone.slice(-2)}`
}

/** A day of the week after a date: "(Wed)", "(水)", "水曜日". */
const WEEKDAY_AFTER = /\s?\((?<name>\p{L}{1,10})\.?\)$|\s(?<plain>[月火水木金土日]曜日?)$/u

/** Reads a day without a time. */
function readDay(fullText: string): string | undefined {
  const before = WEEKDAY.exec(fullText)?.[0] ?? ''
  const rest = fullText.slice(before.length).trim()
  const after = WEEKDAY_AFTER.exec(rest)
  const day = readPlainDay(rest.slice(0, after?.index ?? rest.length).replace(/^den\s/iu, ''))
  // "Tuesday, 4 March 2026" was a Wednesday.
  const areRight = [before, after?.groups?.['name'] ?? after?.groups?.['plain'] ?? ''].every((name) => {
    const expected = WEEKDAYS.findIndex((names) => names.test(name))
    return name === '' || (expected !== -1 && new Date(`${day}T00:00:00Z`).getUTCDay() === expected)
  })
  return areRight ? day : undefined
}

const WEEKDAYS = [
  /^(?:su|so(?!nnabend)|日)/iu,
  /^(?:mo|月)/iu,
  /^(?:tu|di|火)/iu,
  /^(?:we|mi|水)/iu,
  /^(?:th|do|木)/iu,
  /^(?:fr|金)/iu,
  /^(?:sa|sonnabend|土)/iu,
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
  // "20260304" can be no day with its year at the end.
  const compact = /^(\d{4})(\d{2})(\d{2})$/.exec(text)
  if (compact) return Number(text.slice(2, 4)) > 12 ? format(compact[1], compact[2], compact[3]) : undefined
  const japanese = /^(?:(\d{4})|令和\s?(\d{1,2}|元))\s?年\s?(\d{1,2})\s?月\s?(\d{1,2})\s?日$/u.exec(text)
  if (japanese) {
    const [, year, era, month, day] = japanese
    return format(year ?? String(2018 + (era === '元' ? 1 : Number(era))), month, day)
  }
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
