import { Link, type LinkProps } from '@tanstack/react-router'
import { memo, type ReactNode, useId } from 'react'

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

export interface TableProps<Row> {
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
