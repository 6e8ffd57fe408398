import type { LinkProps } from '@tanstack/react-router'
import { type ReactNode, useEffect, useMemo, useRef, useState } from 'react'
import type { List } from '../api/index.ts'
import { type Action, Button } from './button.tsx'
import { type Choices, TextField } from './fields.tsx'
import { FilterSelect, PERIODS, periodText, type Search, useAddress, useFilter, useSetFilters } from './filters.tsx'
import { EmptyState, type EmptyStateProps, ErrorState, Loading, Page } from './page.tsx'
import { useShortcuts } from './shortcuts.ts'
import { focusRow, Table, type TableProps } from './table.tsx'
import { announce } from './toast.ts'

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
