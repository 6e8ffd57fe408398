import { useMemo } from 'react'
import { changedLines } from './changed-lines.ts'

const ELEMENTS: Readonly<Record<string, 'del' | 'ins'>> = { '-': 'del', '+': 'ins' }

/** A field of two versions with its changed lines marked: the removed ones before the added ones. */
export function ChangedText({ field, old, next }: { field: string; old: string; next: string }) {
  const lines = useMemo(() => changedLines(old, next), [old, next])
  return (
    <figure className="changed">
      <figcaption>{field}</figcaption>
      {lines.length > 0 ? (
        <pre>
          {lines.map((line, index) => {
            const Element = ELEMENTS[line.charAt(0)] ?? 'span'
            // The lines have no other identity than their order.
            // oxlint-disable-next-line react/no-array-index-key
            return <Element key={index}>{line.slice(1)}</Element>
          })}
        </pre>
      ) : (
        <p className="muted">They are the same.</p>
      )}
    </figure>
  )
}
