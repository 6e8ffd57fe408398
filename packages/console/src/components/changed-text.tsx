import { useMemo } from 'react'
import { changedLines } from './changed-lines.ts'

const ELEMENTS = { same: 'span', old: 'del', new: 'ins', left_out: 'i' } as const

/** A field of two versions with its changed lines marked: the removed ones before the added ones. */
export function ChangedText({ field, old, next }: { field: string; old: string; next: string }) {
  const parts = useMemo(() => changedLines(old, next), [old, next])
  return (
    <figure className="changed">
      <figcaption>{field}</figcaption>
      <pre>
        {parts.map(({ kind, text }, index) => {
          const { [kind]: Element } = ELEMENTS
          // The parts have no other identity than their order.
          // oxlint-disable-next-line react/no-array-index-key
          return <Element key={index}>{text}</Element>
        })}
      </pre>
    </figure>
  )
}
