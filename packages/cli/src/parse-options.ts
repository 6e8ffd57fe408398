import { DELIVERY_OUTCOMES, UUID_PATTERN } from '@workflow-service/contract/enumerations'
import { InvalidArgumentError } from 'commander'
import { UsageError } from './cli-error.ts'

const UNITS_MS: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** Parses a UUID and returns it in lower case. @throws InvalidArgumentError */
export function parseId(text: string): string {
  if (!UUID_PATTERN.test(text))
    throw new InvalidArgumentError('It must be an id such as 01890a5d-ac96-774b-bcce-b302099a8057.')
  return text.toLowerCase()
}

/** The beginning of an id: 8 digits or more, with the "…" that a narrow table ends it with. */
const ID_PREFIX = /^[0-9a-f]{8}(?:-[0-9a-f]{0,4}){0,3}(?:(?<=-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4})-[0-9a-f]{0,12})?…?$/i

/** Parses an id or its beginning, of at least 8 digits. @throws InvalidArgumentError */
export function parseIdPrefix(text: string): string {
  if (!ID_PREFIX.test(text)) {
    throw new InvalidArgumentError(
      'It must be an id such as 01890a5d-ac96-774b-bcce-b302099a8057, or its beginning of at least 8 digits.',
    )
  }
  return text.replace('…', '').toLowerCase()
}

/** Parses a number from 1 to `max`. @throws InvalidArgumentError */
export function parseNumber(max: number): (text: string) => number {
  return (text) => {
    const number = /^\d{1,6}$/.test(text) ? Number(text) : 0
    if (number < 1 || number > max) throw new InvalidArgumentError(`It must be a whole number from 1 to ${max}.`)
    return number
  }
}

/** Parses a time in the past: ISO 8601, or a duration ago such as `15m`, `2h`, `7d`. @throws InvalidArgumentError */
export function parseTime(text: string): Date {
  return parseMoment(text, (durationMs) => Date.now() - durationMs, 'a duration ago')
}

/** Parses a duration such as `30s`, `10m`, `2h`, and returns milliseconds. @throws InvalidArgumentError */
export function parseDuration(text: string): number {
  const [, amount, unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? []
  const ms = Number(amount) * (UNITS_MS[unit] ?? 0)
  // The longest time of a timer.
  if (!(ms > 0 && ms < 2 ** 31))
    throw new InvalidArgumentError('It must be a duration such as 30s, 10m or 2h, at most 24d.')
  return ms
}

/** Parses a time in the future: ISO 8601, or a duration from now such as `12h`, `90d`. @throws InvalidArgumentError */
export function parseExpiry(text: string): Date {
  const time = parseMoment(text, (durationMs) => Date.now() + durationMs, 'a duration from now')
  if (time.getTime() <= Date.now()) throw new InvalidArgumentError('It must be in the future.')
  return time
}

function parseMoment(text: string, fromNow: (durationMs: number) => number, durationName: string): Date {
  const [, amount, unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? []
  const time = amount === undefined ? isoTime(text) : new Date(fromNow(Number(amount) * (UNITS_MS[unit] ?? 0)))
  if (Number.isNaN(time.getTime())) {
    throw new InvalidArgumentError(
      `It must be a time such as 2026-01-31T09:00:00Z or 2026-01-31 (UTC), or ${durationName} such as 15m, 2h or 7d.`,
    )
  }
  return time
}

/** A time without a zone is UTC, like all printed times. */
function isoTime(text: string): Date {
  const [, day, time = '00:00:00', zone = 'Z'] =
    /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?))?(Z|[+-]\d\d:\d\d)?$/.exec(text) ?? []
  // 2026-02-30 would be read as March 2.
  const isDay = day !== undefined && new Date(`${day}T00:00Z`).toJSON()?.startsWith(day)
  return new Date(isDay ? `${day}T${time}${zone}` : Number.NaN)
}

/** @throws UsageError if no time is both at or after `since` and before `until`. `prefix`: of how these are given. */
export function checkPeriod({ since, until }: { readonly since?: Date; readonly until?: Date }, prefix = '--'): void {
  if (since && until && since >= until) {
    throw new UsageError(
      `${prefix}since (${since.toISOString()}) must be before ${prefix}until (${until.toISOString()}): nothing is in between.`,
    )
  }
}

/** Parses items separated by commas, each one of `values`. @throws InvalidArgumentError */
export function parseList<Value extends string>(values: readonly Value[]): (text: string) => Value[] {
  return (text) => {
    const items = text.split(',').map((item) => item.trim())
    const chosen = values.filter((value) => items.includes(value))
    if (chosen.length === 0 || items.some((item) => !values.some((value) => value === item))) {
      throw new InvalidArgumentError(`It must be one or more of ${values.join(', ')}, separated by commas.`)
    }
    return chosen
  }
}

function parseChoice<Value extends string>(values: readonly Value[]): (text: string) => Value {
  return (text) => {
    const value = values.find((each) => each === text)
    if (value === undefined) throw new InvalidArgumentError(`It must be one of ${values.join(', ')}.`)
    return value
  }
}

function parseStatus(text: string): number {
  if (!/^\d{3}$/.test(text)) throw new InvalidArgumentError('It must be a number such as 500.')
  return Number(text)
}

/** What each field of a condition is read as. */
const CONDITIONS = {
  source: String,
  workflow: String,
  outcome: parseChoice(DELIVERY_OUTCOMES),
  status: parseStatus,
  search: String,
  since: parseTime,
  until: parseTime,
  attention: (text: string) => parseChoice(['yes', 'no'])(text) === 'yes',
}
type Field = keyof typeof CONDITIONS
/** The values of `wf deliveries resend --where`. */
export type Conditions = { readonly [Name in Field]?: ReturnType<(typeof CONDITIONS)[Name]> }

/** @throws InvalidArgumentError */
export function parseCondition(text: string, earlier: Conditions | undefined): Conditions {
  const [, name = '', value = ''] = /^(\w+)=(.*)$/s.exec(text) ?? []
  // An empty search, such as that of an unset variable, would match everything.
  if (!Object.hasOwn(CONDITIONS, name) || value.trim() === '')
    throw new InvalidArgumentError(`It must be FIELD=VALUE with ${Object.keys(CONDITIONS).join(', ')}.`)
  const field = name as Field
  if (earlier?.[field] !== undefined) throw new InvalidArgumentError(`${field} is given twice.`)
  return { ...earlier, [field]: CONDITIONS[field](value) }
}
