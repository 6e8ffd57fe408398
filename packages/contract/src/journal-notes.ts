import type { NewJournalStep, NoteStep } from './journal.ts'

interface JournalNote {
  /** What the page shows above the note's text. */
  readonly title: string
  /** It needs no attention. */
  readonly isRemark?: true
  /** The run waits, queued, for its model, for the next day or month, or for a paused source. */
  readonly isParked?: true
  /** The runner writes it about an attempt at the run; the agent does not see it. */
  readonly isOfAttempt?: true
}

/**
 * The notes that the runner writes into the journal, by their code. A refusal of the built-in agent is one more: it has
 * the code of the run's error. Journals keep codes of earlier releases, so a reader must accept unknown ones.
 */
const NOTES = {
  payload_filled: { title: 'The agent filled in the payload', isRemark: true },
  no_rule_matched: { title: 'No rule matched', isRemark: true },
  files_attached: { title: 'Files attached', isRemark: true },
  sources_selected: { title: 'Webhook sources of the run', isRemark: true },
  history_shortened: { title: 'History shortened', isRemark: true },
  /** The model's API refused the prompt as too long. */
  history_halved: { title: 'History halved' },
  summary_failed: { title: 'Earlier runs not summarized', isRemark: true },
  /** The run succeeded although its model did not call `end_run`. */
  ended_without_call: { title: 'Ended without saying so' },
  model_retry: { title: 'Model asked again' },
  model_limited: { title: 'Model limits requests' },
  /** The run continues with the fallback of its model. */
  model_fallback: { title: 'Another model continues' },
  run_parked: { title: 'Waits for the model', isParked: true },
  budget_spent: { title: 'Waits for the next budget', isParked: true },
  source_paused: { title: 'Waits for a paused source', isParked: true },
  taken_up_again: { title: 'Continued', isRemark: true, isOfAttempt: true },
  attempt_failed: { title: 'Attempt failed', isOfAttempt: true },
} as const satisfies Readonly<Record<string, JournalNote>>

/** The code of a note that the runner writes. */
export type NoteCode = keyof typeof NOTES

/** What is known of the note with this code; undefined for one of another release, or of a refusal. */
export function describeNote(code: string): JournalNote | undefined {
  return Object.hasOwn(NOTES, code) ? NOTES[code as NoteCode] : undefined
}

/** Returns the step of a note. */
export function toNote(code: NoteCode, text: string, more?: Pick<NoteStep, 'model'>) {
  return { kind: 'note', data: { code, text, ...more } } satisfies NewJournalStep
}

/** Whether the step is a note with one of these codes. */
export function isNote(step: NewJournalStep, ...codes: readonly NoteCode[]): boolean {
  return step.kind === 'note' && codes.some((code) => code === step.data.code)
}
