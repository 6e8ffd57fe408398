import { structuredPatch } from 'diff'
import { useMemo } from 'react'

/** Unchanged lines around a change are shown. Texts that differ more are not compared, which takes at most 50 ms. */
const LIMITS = { context: 3, maxEditLength: 2_000, timeout: 50 }
/** Each line is an element. */
const MAX_LINES = 2_000
const ELEMENTS: Readonly<Record<string, 'del' | 'ins'>> = { '-': 'del', '+': 'ins' }

/** The end of the last line is no change. */
const withEnd = (text: string) => (text === '' || text.endsWith('\n') ? text : `${text}\n`)

/** Compares two texts line by line. Each line begins with a space, `-` or `+`; ` …` is where lines are left out. */
function changedLines(old: string, next: string): string[] {
  const patch = structuredPatch('', '', withEnd(old), withEnd(next), '', '', LIMITS)
  const whole = (mark: string, text: string) => text.split('\n', MAX_LINES / 2).map((line) => mark + line)
  const parts = patch?.hunks.map(({ lines }) => lines) ?? [whole('-', old), whole('+', next)]
  const lines = parts.flatMap((part, index) => (index > 0 ? [' …', ...part] : part))
  return lines.length > MAX_LINES ? [...lines.slice(0, MAX_LINES), ' …'] : lines
}

/** A field of two versions with its changed lines marked: the removed ones before the added ones. */
export function ChangedText({ field, old, next }: { field: string; old: string; next: string }) {
  const lines = useMemo(() => changedLines(old, next), [old, next])
  return (
    <figure className="changed">
      <figcaption>{field}</figcaption>
      <pre>
        {lines.map((line, index) => {
          const Element = ELEMENTS[line.charAt(0)] ?? 'span'
          // The lines have no other identity than their order.
          // oxlint-disable-next-line react/no-array-index-key
          return <Element key={index}>{line.slice(1)}</Element>
        })}
      </pre>
    </figure>
  )
}
