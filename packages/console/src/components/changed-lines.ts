import { structuredPatch } from 'diff'

/** Unchanged lines around a change are shown. Texts that differ more are not compared, which takes at most 50 ms. */
const LIMITS = { context: 3, maxEditLength: 2_000, timeout: 50 }
/** Each line is an element. */
const MAX_LINES = 2_000

/** The end of the last line is no change. */
const withEnd = (text: string) => (text === '' || text.endsWith('\n') ? text : `${text}\n`)

const cut = (lines: string[], max: number) =>
  lines.length > max ? [...lines.slice(0, max), ` … ${(lines.length - max).toLocaleString('en')} more lines`] : lines

/**
 * Compares two values line by line. Each line begins with a space, `-` or `+`; ` …` is where lines are left out. Values
 * that read the same, such as 1 and "1", or texts of which one ends its last line, are compared as JSON.
 */
export function changedLines(old: unknown, next: unknown): string[] {
  const lines = compareTexts(textOf(old), textOf(next))
  return lines.length > 0 ? lines : compareTexts(jsonOf(old), jsonOf(next))
}

function textOf(value: unknown): string {
  if (value === null || value === undefined) return ''
  return typeof value === 'string' ? value || '(empty)' : JSON.stringify(value, null, 2)
}

/** Empty for a value that is missing. */
const jsonOf = (value: unknown) => (value === undefined ? '' : JSON.stringify(value))

function compareTexts(old: string, next: string): string[] {
  const patch = structuredPatch('', '', withEnd(old), withEnd(next), '', '', LIMITS)
  const whole = (mark: string, text: string) => {
    const lines = withEnd(text).split('\n').slice(0, -1)
    return cut(
      lines.map((line) => mark + line),
      MAX_LINES / 2,
    )
  }
  if (!patch) return [...whole('-', old), ...whole('+', next)]
  return cut(
    patch.hunks.flatMap(({ lines }, index) => (index > 0 ? [' …', ...lines] : lines)),
    MAX_LINES,
  )
}
