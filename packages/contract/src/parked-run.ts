import { describeNote } from './journal-notes.ts'

interface Step {
  readonly kind: string
  readonly data: unknown
}

/** Why a parked run waits: its status is the same as that of a run that has not begun. Undefined for all others. */
export function whyParked(run: { readonly status: string; readonly steps: readonly Step[] }): string | undefined {
  const last = run.steps
    .map(({ kind, data }) => (kind === 'note' ? (data as { code: string; text: string }) : undefined))
    // While the run waits for the same as before, only notes of its attempts follow.
    .findLast((note) => !note || !describeNote(note.code)?.isOfAttempt)
  return run.status === 'queued' && last && describeNote(last.code)?.isParked ? last.text : undefined
}
