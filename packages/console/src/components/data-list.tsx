import { Link, type LinkProps, useNavigate, useSearch } from '@tanstack/react-router'
import { type ReactNode, useEffect, useRef, useState } from 'react'
import type { List } from '../api/queries.ts'
import { announce } from './announce.ts'
import { Button } from './button.tsx'
import { useShortcut } from './shortcuts.ts'
import { ErrorState, Loading } from './states.tsx'

export interface Column<Row> {
  header: string
  cell: (row: Row) => ReactNode
  /** Numbers and times stay in line at the end. */
  isNumber?: boolean
  /** Left out on a phone. */
  isSecondary?: boolean
}

interface TableProps<Row> {
  /** Names the table for screen readers. */
  label: string
  /** The first column is the heading of its row, and its link. */
  columns: readonly Column<Row>[]
  rowLink?: ((row: Row) => LinkProps | undefined) | undefined
}

/** A table that becomes cards on a phone. */
export function Table<Row extends { id: string }>(props: TableProps<Row> & { rows: readonly Row[] }) {
  const { label, columns, rows, rowLink } = props
  return (
    <table className="data-list">
      <caption className="visually-hidden">{label}</caption>
      <thead>
        <tr>
          {columns.map((column) => (
            <th key={column.header} scope="col" className={cellClass(column)}>
              {column.header}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.id}>
            {columns.map((column, index) => {
              if (index > 0) {
                return (
                  <td key={column.header} data-label={column.header} className={cellClass(column)}>
                    {column.cell(row)}
                  </td>
                )
              }
              const link = rowLink?.(row)
              return (
                <th key={column.header} scope="row">
                  {link ? (
                    <Link {...link} className="row-link">
                      {column.cell(row)}
                    </Link>
                  ) : (
                    column.cell(row)
                  )}
                </th>
              )
            })}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

interface DataListProps<Row> extends TableProps<Row> {
  list: List<Row>
  /** Shown without rows and filters. */
  empty: ReactNode
  /** Controls that change the URL: `FilterSelect`, `FilterSearch`. */
  filters?: ReactNode
  /** Whether a filter is set: an empty list then says so. */
  isFiltered?: boolean
}

/** A table of a list. j/k move between rows, Enter opens one, / goes to the search. */
export function DataList<Row extends { id: string }>(props: DataListProps<Row>) {
  const { label, list, columns, rowLink, empty, filters, isFiltered } = props
  const table = useRef<HTMLDivElement>(null)
  const { newCount } = list
  useEffect(() => {
    if (newCount > 0) announce(newText(newCount))
  }, [newCount])
  const move = (step: number) => {
    const links = [...(table.current?.querySelectorAll<HTMLElement>('.row-link') ?? [])]
    const at = links.findIndex((link) => link.closest('tr')?.contains(document.activeElement))
    links[at < 0 && step < 0 ? links.length - 1 : Math.min(Math.max(at + step, 0), links.length - 1)]?.focus()
  }
  useShortcut('j', () => move(1))
  useShortcut('k', () => move(-1))
  useShortcut('/', () => document.querySelector<HTMLElement>('input[type="search"]')?.focus())

  let content: ReactNode
  if (list.error && list.rows.length === 0) content = <ErrorState error={list.error} onRetry={list.retry} />
  else if (list.isLoading) content = <Loading label={`Loading ${label}`} />
  else if (list.rows.length === 0) {
    content = isFiltered ? <p className="state muted">Nothing matches these filters.</p> : empty
  } else {
    content = <Table label={label} columns={columns} rows={list.rows} rowLink={rowLink} />
  }
  return (
    <div ref={table} className="list">
      {filters ? (
        <div className="filters" role="search" aria-label={`Filter ${label}`}>
          {filters}
        </div>
      ) : null}
      {newCount > 0 ? (
        <Button className="new-rows" icon="up" onClick={list.showNew}>
          {newText(newCount)}
        </Button>
      ) : null}
      {content}
      {list.hasOlder ? (
        <div className="older">
          <Button isBusy={list.isLoadingOlder} onClick={list.loadOlder}>
            Older
          </Button>
        </div>
      ) : null}
      {list.error && list.rows.length > 0 ? <ErrorState error={list.error} onRetry={list.retry} /> : null}
    </div>
  )
}

function newText(count: number): string {
  return Number.isFinite(count) ? `${count} new` : 'Many new'
}

function cellClass<Row>(column: Column<Row>): string | undefined {
  return [column.isNumber && 'number', column.isSecondary && 'secondary'].filter(Boolean).join(' ') || undefined
}

/** The filters of a list, which are search parameters of the URL. An empty value removes one. */
export function useFilters<Name extends string>(...names: Name[]) {
  const search = useSearch({ strict: false })
  const navigate = useNavigate()
  const values = Object.fromEntries(names.map((name) => [name, search[name] || undefined])) as {
    [Key in Name]?: string
  }
  return {
    values,
    isFiltered: names.some((name) => values[name] !== undefined),
    set: (name: Name, value: string) =>
      void navigate({
        to: '.',
        replace: true,
        search: (before: Record<string, string | undefined>) => ({ ...before, [name]: value || undefined }),
      }),
  }
}

interface Filters<Name extends string> {
  values: { [Key in Name]?: string }
  set: (name: Name, value: string) => void
}

/** A filter with a few choices. */
export function FilterSelect<Name extends string>(props: {
  filters: Filters<Name>
  name: Name
  label: string
  options: readonly (readonly [value: string, label: string])[]
  /** The choice without a value. */
  none?: string
}) {
  const { filters, name, label, options, none = `${label}: all` } = props
  return (
    <select
      className="input"
      aria-label={label}
      value={filters.values[name] ?? ''}
      onChange={(event) => filters.set(name, event.target.value)}
    >
      <option value="">{none}</option>
      {options.map(([value, text]) => (
        <option key={value} value={value}>
          {text}
        </option>
      ))}
    </select>
  )
}

const TYPING_PAUSE_MS = 250

/** The search field of a list. */
export function FilterSearch<Name extends string>(props: { filters: Filters<Name>; name: Name; label: string }) {
  const { filters, name, label } = props
  const [text, setText] = useState(filters.values[name] ?? '')
  const timer = useRef<number>(undefined)
  return (
    <input
      type="search"
      className="input"
      aria-label={label}
      placeholder={label}
      value={text}
      maxLength={200}
      onChange={({ target }) => {
        setText(target.value)
        window.clearTimeout(timer.current)
        timer.current = window.setTimeout(() => filters.set(name, target.value.trim()), TYPING_PAUSE_MS)
      }}
    />
  )
}

/** Formats a time as the value of a field for local times. */
function localText(value: string | undefined): string {
  if (!value || Number.isNaN(Date.parse(value))) return ''
  const date = new Date(value)
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

/** Filters by time: `since` and `until` in the reader's zone. */
export function FilterPeriod({ filters }: { filters: Filters<'since' | 'until'> }) {
  return (['since', 'until'] as const).map((name) => (
    <label key={name} className="filter-time">
      {name === 'since' ? 'Since' : 'Until'}
      <input
        type="datetime-local"
        className="input"
        value={localText(filters.values[name])}
        onChange={({ target }) => filters.set(name, target.value ? new Date(target.value).toISOString() : '')}
      />
    </label>
  ))
}
