import { useNavigate, useSearch } from '@tanstack/react-router'
import { invalid } from '../api/index.ts'
import { openForm } from './dialog.tsx'
import { type Choices, SelectField, TextField } from './fields.tsx'
import { DATE_TIME, HOUR_MS, useNow } from './status-and-time.tsx'

/** What the address has beside its path: filters, and what is open beside a list. */
export type Search = Readonly<Record<string, string | undefined>>
export const useAddress = (): Search => useSearch({ strict: false })

/** Changes filters in the address. An empty value removes one. */
export function useSetFilters() {
  const navigate = useNavigate()
  return async (changes: Search) =>
    await navigate({ to: '.', replace: true, search: (before: object) => ({ ...before, ...changes }) })
}

/** The filters of a list, which are search parameters of the URL. */
export function useFilters<Name extends string>(...names: Name[]): { [Key in Name]?: string } {
  const { last = '', ...search } = useAddress()
  useNow()
  const filters: Search = { ...search, since: search['since'] || sinceOf(last) }
  return Object.fromEntries(names.map((name) => [name, filters[name] || undefined])) as { [Key in Name]?: string }
}

/** A filter and what sets it. An empty value removes it. */
export function useFilter(name: string) {
  const setFilters = useSetFilters()
  return [useFilters(name)[name] ?? '', (value: string) => void setFilters({ [name]: value })] as const
}

/** Opens something beside the list, by its id in the address. */
export const linkBeside = (name: string, id?: string) =>
  ({ to: '.', search: (before: object) => ({ ...before, [name]: id }), resetScroll: false }) as const

/** The id in the address of what is open beside a list, and what opens another one or none. */
export function useOpened(name: string) {
  const navigate = useNavigate()
  return [useAddress()[name], (id?: string) => void navigate({ ...linkBeside(name, id), ignoreBlocker: true })] as const
}

/** A filter with a few choices. `none` is the choice without a value. */
export function FilterSelect({ name, ...field }: { name: string; label: string; options: Choices; none?: string }) {
  const [value, set] = useFilter(name)
  return (
    <SelectField
      isLabelHidden
      none={`${field.label}: all`}
      {...field}
      data-active={value ? true : undefined}
      value={value}
      onValue={set}
    />
  )
}

type Periods<Value> = Readonly<Record<string, Value>>
/** The periods until now by their names in the address, and their hours. */
export const PERIODS: Periods<string> = {
  '1h': 'Last hour',
  '24h': 'Last 24 h',
  '7d': 'Last 7 days',
  '30d': 'Last 30 days',
}
const HOURS: Periods<number> = { '1h': 1, '24h': 24, '7d': 168, '30d': 720 }
/**
 * The beginning of each period, counted when it was chosen, and again once it is half a period too early, or too late
 * because the clock was set back: a list begins anew with each other one.
 */
const begun = new Map<string, string>()

function sinceOf(last: string): string | undefined {
  const { [last]: hours } = HOURS
  if (hours === undefined) return undefined
  const [now, before] = [Date.now(), begun.get(last)]
  const periods = before ? (now - Date.parse(before)) / (hours * HOUR_MS) : 0
  if (periods >= 1 && periods < 1.5) return before
  const since = new Date(now - hours * HOUR_MS).toISOString()
  begun.set(last, since)
  return since
}

function isoText(field: string, value: string): string {
  if (Number.isNaN(Date.parse(value || '2000'))) throw invalid(field, 'Enter a year of four digits.')
  return value && new Date(value).toISOString()
}

/** Formats a time of the address, which may be anything; empty if it is no time. */
const timeText = (value: string | undefined, format: (time: Date) => string) =>
  value === undefined || Number.isNaN(Date.parse(value)) ? '' : format(new Date(value))

/** Formats a time as the value of a field for local times. */
const localText = (time: Date) =>
  new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)

/** The words for a period; empty if it is none. */
export function periodText({ since, until }: Search): string {
  const from = timeText(since, (time) => DATE_TIME.format(time))
  const to = timeText(until, (time) => DATE_TIME.format(time))
  if (from) return to ? `${from} – ${to}` : `Since ${from}`
  return to && `Until ${to}`
}

const CHOOSE = 'choose'

/** Filters by time: a period until now, or one that a person chooses. Always in the address. `none`: without one. */
export function FilterPeriod({ none = 'Any time' }) {
  const search = useAddress()
  const setFilters = useSetFilters()
  const set = async (period: Search) => {
    begun.clear()
    await setFilters({ last: '', since: '', until: '', ...period })
  }
  const { last = '', since, until } = search
  const chosen = periodText(search)
  const shown = { since: timeText(since, localText), until: timeText(until, localText) }
  const choose = () =>
    openForm({
      title: 'Choose a period',
      action: 'Show',
      isTransient: true,
      values: shown,
      async save(typed) {
        // The text of a time lacks its seconds, and means an earlier time where daylight saving repeats the hour.
        const [from, to] = (['since', 'until'] as const).map((name) =>
          typed[name] && typed[name] === shown[name] ? search[name] : isoText(name, typed[name]),
        )
        if (from && to && Date.parse(from) >= Date.parse(to))
          throw invalid('until', 'Enter a time after the beginning.')
        await set({ since: from, until: to })
      },
      // The browser's own fields: phones have a picker for them, and the order of day and month is the system's.
      fields: ({ field }) => (
        <div className="columns">
          <TextField type="datetime-local" {...field('since', 'Since')} />
          <TextField type="datetime-local" {...field('until', 'Until')} />
        </div>
      ),
    })
  return (
    <SelectField
      label="Time"
      isLabelHidden
      name="last"
      none={none}
      options={{ ...PERIODS, ...(chosen ? { chosen } : {}), [CHOOSE]: 'Choose a period …' }}
      value={chosen ? 'chosen' : last in PERIODS ? last : ''}
      onValue={(value) => (value === CHOOSE ? choose() : value === 'chosen' ? undefined : void set({ last: value }))}
    />
  )
}
