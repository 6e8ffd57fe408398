import { diffLines } from 'diff'

/** Lines of two texts in a row: of both, only of the old or the new one, or left out, with their number. */
export interface Lines {
  readonly kind: 'same' | 'old' | 'new' | 'left_out'
  readonly text: string
}

/** Unchanged lines that are shown around a change. */
const CONTEXT = 3
/** Two texts that differ more are shown one after the other. Comparing them takes at most 50 ms. */
const LIMITS = { maxEditLength: 2_000, timeout: 50 }
/** Lines of one row that are shown: each is an element. */
const MAX_LINES = 500

/** Compares two texts line by line. Unchanged lines far from a change are left out. */
export function changedLines(old: string, next: string): Lines[] {
  const parts = diffLines(withEnd(old), withEnd(next), LIMITS) ?? [
    { value: old, added: false, removed: true },
    { value: next, added: true, removed: false },
  ]
  return parts.flatMap(({ value, added, removed }, index) => {
    const lines = value.replace(/\n$/, '').split('\n')
    if (value === '') return []
    if (added || removed) return cut(removed ? 'old' : 'new', lines, MAX_LINES, 0)
    return cut('same', lines, index === 0 ? 0 : CONTEXT, index === parts.length - 1 ? 0 : CONTEXT)
  })
}

/** A last line without an end is the same as one with it. */
const withEnd = (text: string) => (text === '' || text.endsWith('\n') ? text : `${text}\n`)

/** The first and the last lines, with the number of those between them. */
function cut(kind: Lines['kind'], lines: readonly string[], first: number, last: number): Lines[] {
  const left = lines.length - first - last
  if (left <= 1) return [{ kind, text: lines.join('\n') }]
  const shown = (part: readonly string[]) => (part.length > 0 ? [{ kind, text: part.join('\n') }] : [])
  const leftOut = { kind: 'left_out', text: `${left.toLocaleString('en')} lines` } as const
  return [...shown(lines.slice(0, first)), leftOut, ...shown(lines.slice(lines.length - last))]
}
