import { describeNote } from './journal-notes.ts'

interface Step {
  readonly kind: string
  readonly data: unknown
}

interface Run {
  readonly status: string
  readonly steps: readonly Step[]
  /** Whether it waits for a paused source: its journal does not say that the source was resumed. */
  readonly waits_for_source: boolean
}

/** Why a parked run waits: its status is the same as that of a run that has not begun. Undefined for all others. */
export function whyParked(run: Run): string | undefined {
  const last = run.steps
    .map(({ kind, data }) => (kind === 'note' ? (data as { code: string; text: string }) : undefined))
    // While the run waits for the same as before, only notes of its attempts follow.
    .findLast((note) => !note || !describeNote(note.code)?.isOfAttempt)
  if (run.status !== 'queued' || !last || !describeNote(last.code)?.isParked) return undefined
  return last.code === 'source_paused' && !run.waits_for_source ? undefined : last.text
}
