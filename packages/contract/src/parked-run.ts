/** The notes of a run that waits for its model, for the next day or month, or for a paused source. */
const PARKED: readonly string[] = ['run_parked', 'budget_spent', 'source_paused']
/** The notes of an attempt that continues a run. While the run waits for the same as before, no other note follows. */
const ATTEMPTS: readonly string[] = ['taken_up_again', 'attempt_failed']

interface Step {
  readonly kind: string
  readonly data: unknown
}

function noteOf({ kind, data }: Step): { readonly code: string; readonly text: string } | undefined {
  return kind === 'note' ? (data as { code: string; text: string }) : undefined
}

/** Why a parked run waits: its status is the same as that of a run that has not begun. Undefined for all others. */
export function whyParked(run: { readonly status: string; readonly steps: readonly Step[] }): string | undefined {
  const last = run.steps.findLast((step) => !ATTEMPTS.includes(noteOf(step)?.code ?? ''))
  const note = last && noteOf(last)
  return run.status === 'queued' && note && PARKED.includes(note.code) ? note.text : undefined
}
