import { useMemo } from 'react'
import { changedLines } from './changed-lines.ts'

interface Change {
  field: string
  old: unknown
  new: unknown
}

/** Shows what differs between two versions of each field, line by line. `names` says whose the lines are. */
export function Changes(props: { changes: readonly Change[]; names?: readonly [old: string, next: string] }) {
  const { changes, names: [old, next] = ['Before', 'After'] } = props
  if (changes.length === 0) return null
  return (
    <div className="changes">
      <p>
        <del data-sign="−">{old}</del> <ins data-sign="+">{next}</ins>
      </p>
      {changes.map((change) => (
        <ChangedField key={change.field} {...change} />
      ))}
    </div>
  )
}

const ELEMENTS: Readonly<Record<string, 'del' | 'ins'>> = { '-': 'del', '+': 'ins' }

/** The removed lines come before the added ones. */
function ChangedField({ field, old, new: next }: Change) {
  const lines = useMemo(() => changedLines(old, next), [old, next])
  const shown = lines.map((line, index) => {
    const Line = ELEMENTS[line.charAt(0)] ?? 'span'
    return (
      // The lines have no other identity than their order.
      // oxlint-disable-next-line react/no-array-index-key
      <Line key={index} data-sign={line.charAt(0).replace('-', '−')}>
        {line.slice(1)}
      </Line>
    )
  })
  return (
    <figure>
      <figcaption>{field}</figcaption>
      {shown.length > 0 ? <pre>{shown}</pre> : <p className="muted">The lines are the same.</p>}
    </figure>
  )
}
