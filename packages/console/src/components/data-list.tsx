import { Link, type LinkProps, useNavigate, useSearch } from '@tanstack/react-router'
import { memo, type ReactNode, useEffect, useId, useMemo, useRef, useState } from 'react'
import { invalid, type List } from '../api/index.ts'
import { type Action, Button } from './button.tsx'
import { openForm } from './dialog.tsx'
import { type Choices, SelectField, TextField } from './fields.tsx'
import { EmptyState, type EmptyStateProps, ErrorState, Loading, Page } from './page.tsx'
import { useShortcuts } from './shortcuts.ts'
import { DATE_TIME, HOUR_MS, useNow } from './status-and-time.tsx'
import { announce } from './toast.ts'

export interface Column<Row> {
  header: string
  cell: (row: Row) => ReactNode
  /** Numbers and times stay in line at the end. */
  isNumber?: boolean
  /** Words of ours, which stay on one line. */
  isShort?: boolean
  /** Left out on a phone. */
  isSecondary?: boolean
  /** Left out while its cells are null in all rows; on a phone as wide as the card. */
  isOptional?: boolean
}

interface TableProps<Row> {
  /** Names the table. */
  label: string
  isLabelShown?: boolean
  /** The first column is the heading of its row, and its link. */
  columns: readonly Column<Row>[]
  rowLink?: ((row: Row) => LinkProps | undefined) | undefined
  /** The ids of the rows that a person has chosen, and what changes them. */
  choice?: Choice | undefined
}

interface Choice {
  readonly ids: ReadonlySet<string>
  readonly set: (ids: ReadonlySet<string>) => void
}

/** Chooses rows, or gives them up. Named by its label, and by the element whose id is `heading`. */
function ChoiceBox(props: { label: string; heading?: string; of: readonly string[]; choice: Choice }) {
  const { label, heading, of, choice } = props
  const id = useId()
  const change = (isChosen: boolean) => {
    const ids = new Set(choice.ids)
    for (const each of of) ids[isChosen ? 'add' : 'delete'](each)
    choice.set(ids)
  }
  return (
    <label>
      <input
        id={id}
        type="checkbox"
        aria-label={label}
        aria-labelledby={heading && `${id} ${heading}`}
        title={label}
        checked={of.length > 0 && of.every((each) => choice.ids.has(each))}
        onChange={({ target }) => change(target.checked)}
      />
    </label>
  )
}

/** Shorter texts fit into the narrowest column. */
const LONG = 30

/** A table that becomes cards on a phone. Hundreds of rows are not rendered again beside a delivery that opens. */
export const Table = memo(TableOf) as typeof TableOf

function TableOf<Row extends { id: string }>(props: TableProps<Row> & { rows: readonly Row[] }) {
  const { label, isLabelShown, rows, rowLink, choice } = props
  const tableId = useId()
  const columns = props.columns.filter(({ isOptional, cell }) => !isOptional || rows.some((row) => cell(row) !== null))
  return (
    <table className="data-list">
      <caption className={isLabelShown ? undefined : 'visually-hidden'}>{label}</caption>
      <thead>
        <tr>
          {choice ? (
            <th scope="col" className="choice">
              <ChoiceBox label="Select all" of={rows.map(({ id }) => id)} choice={choice} />
            </th>
          ) : null}
          {columns.map((column) => (
            <th key={column.header} scope="col" className={cellClass(column)}>
              {column.header}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.id} data-row={row.id}>
            {choice ? (
              <td className="choice">
                <ChoiceBox label="Select" heading={`${tableId}-${row.id}`} of={[row.id]} choice={choice} />
              </td>
            ) : null}
            {columns.map((column, index) =>
              index === 0 ? (
                <th key={column.header} id={`${tableId}-${row.id}`} scope="row" className={cellClass(column)}>
                  <RowHeading link={rowLink?.(row)}>{contentOf(column, row)}</RowHeading>
                </th>
              ) : (
                <td key={column.header} data-label={column.header} className={cellClass(column)}>
                  {contentOf(column, row)}
                </td>
              ),
            )}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

/** A long text is cut off after two lines. */
function contentOf<Row>({ cell }: Column<Row>, row: Row): ReactNode {
  const content = cell(row)
  if (typeof content !== 'string' || content.length < LONG) return content
  return (
    <span className="clamp" title={content}>
      {content}
    </span>
  )
}

function RowHeading({ link, children }: { link: LinkProps | undefined; children: ReactNode }) {
  if (!link) return children
  return (
    <Link {...link} className="row-link">
      {children}
    </Link>
  )
}

const cellClass = <Row,>({ isNumber, isShort, isSecondary, isOptional }: Column<Row>) =>
  [isNumber && 'number', isShort && 'nowrap', isSecondary && 'secondary', isOptional && 'wide']
    .filter(Boolean)
    .join(' ') || undefined

/** Moves the focus to the link of a row, if the row is shown. Returns whether it is. */
export function focusRow(id: string): boolean {
  const link = document.querySelector<HTMLElement>(`[data-row="${CSS.escape(id)}"] .row-link`)
  link?.focus()
  return link !== null
}

interface DataListProps<Row> extends Omit<TableProps<Row>, 'choice'> {
  list: List<Row>
  /** Shown without rows and filters. */
  empty: EmptyStateProps
  /** The values of `useFilters`. */
  filters?: Search
  /** The label of the search, if the list has one. */
  search?: string
  /** How each filter is named, and its choices, if it has a few. */
  fields?: Record<string, FilterField>
  /** What changes the other filters, such as `FilterPeriod`. */
  controls?: ReactNode
  /** Makes rows selectable: what can be done with those that are selected. */
  actionsOf?: (ids: readonly string[]) => ReactNode
}

interface FilterField {
  label: string
  options?: Choices
  /** The words for a value, without `options`. */
  text?: (value: string) => string
}

const isFiltered = <Row,>({ filters = {} }: DataListProps<Row>) => Object.values(filters).some(Boolean)

/** Whether the list has no rows at all, not only none that the filters let through. */
const isEmpty = <Row,>(props: DataListProps<Row>) =>
  !props.list.isLoading && props.list.rows.length === 0 && !isFiltered(props)

/** A table of a list. j/k move between rows, Enter opens one, / goes to the search. */
export function DataList<Row extends { id: string }>(props: DataListProps<Row>) {
  const { label, list, empty, controls, actionsOf, search, filters = {}, fields = {}, columns, rowLink } = props
  const { rows, error, retry, newCount = 0, loadOlder } = list
  const table = useRef<HTMLDivElement>(null)
  const setFilters = useSetFilters()
  const [clears, setClears] = useState(0)
  const [isOpen, setIsOpen] = useState(false)
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  // A filter, or what happened since, may have removed a row.
  const choice = useMemo(
    () => ({ ids: new Set(rows.flatMap(({ id }) => (chosen.has(id) ? id : []))), set: setChosen }),
    [chosen, rows],
  )
  async function clear(...names: string[]) {
    await setFilters(Object.fromEntries(names.map((name) => [name, undefined])))
    setClears(clears + 1)
  }
  const active = Object.entries(filters).filter(
    ([name, value]) => value && name !== 'search' && !(name === 'until' && filters['since']),
  ).length
  const clearAll = () => clear(...Object.keys(filters), ...IN_PERIOD)
  useEffect(() => {
    // The button is gone, and with it the focus.
    const inputs = table.current?.querySelectorAll<HTMLElement>('.filters :is(input, select, button)') ?? []
    if (clears > 0) [...inputs].find((each) => each.checkVisibility())?.focus()
  }, [clears])
  const newText = Number.isFinite(newCount) ? `${newCount} new` : 'Many new'
  const hasNew = newCount > 0
  useEffect(() => {
    // Once, and not for each row that follows.
    if (hasNew) announce(`New ${label}`)
  }, [hasNew, label])
  const count = `${rows.length}${loadOlder ? '+' : ''} found`
  useResultAnnouncement(JSON.stringify(filters), list, rows.length === 0 ? nothingText(loadOlder) : count)
  const focusLater = useFocusLater()
  const showOlder = async () => {
    const older = (await list.loadOlder?.())?.slice(rows.length) ?? []
    if (older.length > 0) announce(`${older.length} more ${label}`)
    focusLater(older[0]?.id)
  }
  const move = (step: number) => {
    const links = [...(table.current?.querySelectorAll<HTMLElement>('.row-link') ?? [])]
    const at = links.findIndex((link) => link.closest('tr')?.contains(document.activeElement))
    links[at < 0 && step < 0 ? links.length - 1 : Math.min(Math.max(at + step, 0), links.length - 1)]?.focus()
  }
  useShortcuts({
    j: () => move(1),
    k: () => move(-1),
    '/': () => document.querySelector<HTMLElement>('input[type="search"]')?.focus(),
  })
  return (
    <div ref={table} className="list">
      {(search || controls) && !isEmpty(props) ? (
        // New after a "Clear": a search field keeps what was typed.
        <div
          key={clears}
          className="filters"
          role="search"
          aria-label={`Filter ${label}`}
          data-open={isOpen || undefined}
        >
          {search ? <FilterSearch label={search} /> : null}
          <Button
            label={active > 0 ? `Filters (${active})` : 'Filters'}
            className="fold"
            aria-expanded={isOpen}
            onClick={() => setIsOpen(!isOpen)}
          />
          {Object.entries(fields).map(([name, { label: of, options }]) =>
            options ? <FilterSelect key={name} name={name} label={of} options={options} /> : null,
          )}
          {controls}
          {choice.ids.size > 0 ? actionsOf?.([...choice.ids]) : null}
          {isFiltered(props) ? (
            <FilterChips filters={filters} fields={fields} onRemove={(...names) => void clear(...names)} />
          ) : null}
          {isFiltered(props) ? <Button label="Clear" icon="close" variant="ghost" onClick={clearAll} /> : null}
        </div>
      ) : null}
      {newCount > 0 ? (
        <Button label={newText} className="new-rows" icon="up" onClick={() => focusLater(list.showNew?.())} />
      ) : null}
      {rows.length > 0 ? (
        <Table label={label} columns={columns} rowLink={rowLink} rows={rows} choice={actionsOf && choice} />
      ) : error ? null : list.isLoading ? (
        <Loading label={`Loading ${label}`} />
      ) : isEmpty(props) ? (
        <EmptyState {...empty} />
      ) : (
        <div className="state">
          <p>{nothingText(loadOlder)}</p>
          <Button label="Clear the filters" onClick={clearAll} />
        </div>
      )}
      {loadOlder ? <Button label="Older" onClick={showOlder} /> : null}
      {error ? <ErrorState error={error} onRetry={retry} /> : null}
    </div>
  )
}

const nothingText = (loadOlder: unknown) =>
  loadOlder ? 'Nothing matches so far. Look at older entries, too.' : 'Nothing matches these filters.'

/** Says what other filters have found, once it is shown. The focus stays in the filter. */
function useResultAnnouncement(filters: string, { isLoading, isOld, error }: List<unknown>, text: string): void {
  const saidFor = useRef(filters)
  useEffect(() => {
    if (isLoading || isOld || error || saidFor.current === filters) return
    saidFor.current = filters
    announce(text)
  }, [isLoading, isOld, error, filters, text])
}

/** Returns what focuses a row as soon as it is shown. */
function useFocusLater() {
  const wanted = useRef<string>(undefined)
  const focusWanted = () => {
    if (wanted.current && focusRow(wanted.current)) wanted.current = undefined
  }
  useEffect(focusWanted)
  return (id: string | undefined) => {
    wanted.current = id
    focusWanted()
  }
}

const IN_PERIOD = ['last', 'since', 'until']

/** What the list is filtered by, each with a button that removes it. */
function FilterChips(props: {
  filters: Search
  fields: Record<string, FilterField>
  onRemove: (...names: string[]) => void
}) {
  const { last = '' } = useAddress()
  const { filters, fields, onRemove } = props
  const period = PERIODS[last] ?? periodText(filters)
  const chips = [
    ...Object.entries(fields).flatMap(([name, { label, options, text }]) => {
      const value = filters[name]
      return value ? [{ names: [name], label: `${label}: ${options?.[value] ?? text?.(value) ?? value}` }] : []
    }),
    ...(period ? [{ names: IN_PERIOD, label: period }] : []),
  ]
  return (
    <ul className="chips" aria-label="Filters">
      {chips.map(({ names, label }) => (
        <li key={label}>
          <Button
            label={label}
            aria-label={`Remove the filter ${label}`}
            icon="close"
            className="chip"
            onClick={() => onRemove(...names)}
          />
        </li>
      ))}
    </ul>
  )
}

interface ListPageProps<Row> extends DataListProps<Row> {
  title: string
  intro?: string
  back?: readonly [label: string, link: LinkProps]
  /** Makes a new row. Beside the title, or the next step of an empty list. */
  create?: Action | undefined
  /** Beside the list, such as a drawer. */
  children?: ReactNode
}

export function ListPage<Row extends { id: string }>(props: ListPageProps<Row>) {
  const { title, intro, back, create, children, ...list } = props
  const action = create && ({ variant: 'primary', icon: 'plus', ...create } as const)
  return (
    <Page
      title={title}
      intro={intro}
      back={back}
      actions={action && !list.list.isLoading && !isEmpty(list) && <Button {...action} />}
    >
      <DataList {...list} empty={{ action, ...list.empty }} />
      {children}
    </Page>
  )
}

/** What the address has beside its path: filters, and what is open beside a list. */
type Search = Readonly<Record<string, string | undefined>>
const useAddress = (): Search => useSearch({ strict: false })

/** Changes filters in the address. An empty value removes one. */
function useSetFilters() {
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

const TYPING_PAUSE_MS = 250

/** The search field of a list. */
function FilterSearch({ label }: { label: string }) {
  const [value, set] = useFilter('search')
  const [text, setText] = useState(value)
  const timer = useRef<number>(undefined)
  const sent = useRef(value)
  function type(typed: string) {
    setText(typed)
    window.clearTimeout(timer.current)
    timer.current = window.setTimeout(() => set((sent.current = typed.trim())), TYPING_PAUSE_MS)
  }
  useEffect(() => {
    // A link or the back button has changed the address.
    if (value !== sent.current) setText((sent.current = value))
  }, [value])
  useEffect(() => () => window.clearTimeout(timer.current), [])
  const field = { label, placeholder: label, value: text, onValue: type }
  return <TextField {...field} isLabelHidden type="search" maxLength={200} />
}

type Periods<Value> = Readonly<Record<string, Value>>
/** The periods until now by their names in the address, and their hours. */
const PERIODS: Periods<string> = { '1h': 'Last hour', '24h': 'Last 24 h', '7d': 'Last 7 days', '30d': 'Last 30 days' }
const HOURS: Periods<number> = { '1h': 1, '24h': 24, '7d': 168, '30d': 720 }
const CHOOSE = 'choose'
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
function periodText({ since, until }: Search): string {
  const from = timeText(since, (time) => DATE_TIME.format(time))
  const to = timeText(until, (time) => DATE_TIME.format(time))
  if (from) return to ? `${from} – ${to}` : `Since ${from}`
  return to && `Until ${to}`
}

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
