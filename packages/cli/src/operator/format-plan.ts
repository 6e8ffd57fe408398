import type { AppliedManifest, ManifestChange, PersonEdit } from '@workflow-service/database/manifest'
import { paint, showTime, type Terminal, withoutControls } from '../terminal.ts'

export const THING_NAMES: Record<PersonEdit['kind'], string> = {
  organization: 'organization',
  user: 'user',
  api_key: 'API key',
  webhook_source: 'webhook source',
  lookup: 'look-up',
  workflow: 'workflow',
  session: 'session',
}

const MARKS = {
  created: ['+', 'green'],
  changed: ['~', 'yellow'],
  unchanged: ['=', 'dim'],
  failed: ['✗', 'red'],
} as const

/** What became of a thing, and what is shown below it. Absent: what was planned. */
export interface ThingResult {
  readonly outcome?: keyof typeof MARKS
  readonly changes?: readonly ManifestChange[]
  readonly note?: string | undefined
}

/** Formats what applying a manifest creates, changes and leaves unchanged, with the old and new values. */
export function formatPlan(
  { things, overwrites }: Pick<AppliedManifest, 'things' | 'overwrites'>,
  terminal: Terminal,
  results: ReadonlyMap<string, ThingResult> = new Map(),
): string {
  const editById = new Map(overwrites.map((edit) => [edit.id, edit]))
  const counts = { created: 0, changed: 0, unchanged: 0, failed: 0 }
  const lines = things.flatMap(({ kind, id, name, ...planned }) => {
    const { outcome, changes, note } = { note: undefined, ...planned, ...results.get(id) }
    counts[outcome] += 1
    const [mark, colour] = MARKS[outcome]
    const title = withoutControls([THING_NAMES[kind], name, ...(id === name ? [] : [id])].join('  '))
    const edit = editById.get(id)
    return [
      paint(terminal, colour, `${mark} ${title}`),
      ...changes.map((change) => `    ${withoutControls(formatChange(change))}`),
      ...(note === undefined ? [] : [`    ${withoutControls(note)}`]),
      ...(edit ? [paint(terminal, 'red', `    ! ${formatEdit(edit)}`)] : []),
    ]
  })
  const failed = counts.failed > 0 ? `, failed: ${counts.failed}` : ''
  const summary = `New: ${counts.created}, changed: ${counts.changed}, unchanged: ${counts.unchanged}${failed}.`
  return [...lines, '', summary, ''].join('\n')
}

/** Says who changed a thing in the application, and when. */
export function formatEdit({ by, at, action, count }: PersonEdit): string {
  const others = count === 1 ? '' : `, and ${count - 1} earlier ${count === 2 ? 'change' : 'changes'}`
  return withoutControls(`changed in the application by ${by}, ${showTime(at)} UTC (${action}${others})`)
}

function formatChange({ field, old, new: value }: ManifestChange): string {
  if (old === null && typeof value === 'object') return `${field}: added`
  if (value === null && typeof old === 'object') return `${field}: removed`
  if (field === 'users') return `${field}: ${old === null ? `+ ${toText(value)}` : `- ${toText(old)}`}`
  const [before, after] = [toText(old), toText(value)]
  const start = Math.max(0, commonPrefixLength(before, after) - CONTEXT_LENGTH)
  return `${field}: ${excerpt(before, start)} → ${excerpt(after, start)}`
}

/** The longest value that is shown whole, and how much of the equal beginning is shown of a longer one. */
const SHOWN_LENGTH = 80
const CONTEXT_LENGTH = 20

function toText(value: unknown): string {
  return value === null ? 'none' : (JSON.stringify(value) ?? 'none')
}

function excerpt(text: string, start: number): string {
  if (text.length <= SHOWN_LENGTH) return text
  const part = text.slice(start, start + SHOWN_LENGTH)
  return `${start > 0 ? '…' : ''}${part.toWellFormed()}${start + SHOWN_LENGTH < text.length ? '…' : ''}`
}

function commonPrefixLength(a: string, b: string): number {
  let length = 0
  while (length < a.length && a[length] === b[length]) length += 1
  return length
}
