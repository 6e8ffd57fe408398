import {
  type JournalStep,
  type NewJournalStep,
  type NoteCode,
  type RunJournalState,
  toNote,
} from '@workflow-service/contract'
import type { StoredRun } from './run-store.ts'

/** The journal of a run under way (contract README, "The journal"). */
export type RunJournal = ReturnType<typeof openJournal>

/**
 * Opens the journal of a new run; of any other run, call `readSteps` first.
 * @param onAppended Called after each write with the kind of its last step and the time since the write before.
 */
export function openJournal(
  stored: Pick<StoredRun, 'readSteps' | 'appendSteps'>,
  onAppended?: (kind: NewJournalStep['kind'], durationMs: number) => void,
) {
  let nextPosition = 0
  let planned: NewJournalStep[] = []
  let lastAppendMs = performance.now()
  let isEnded = false

  const wrote = (count: number, kind: NewJournalStep['kind']): void => {
    planned = []
    nextPosition += count
    const nowMs = performance.now()
    onAppended?.(kind, nowMs - lastAppendMs)
    lastAppendMs = nowMs
  }
  const append = async (added: readonly NewJournalStep[]): Promise<void> => {
    const steps = [...planned, ...added]
    const last = steps.at(-1)
    if (!last) return
    await stored.appendSteps(nextPosition, steps)
    wrote(steps.length, last.kind)
  }
  return {
    /** Reads the steps that are in the database; the next step is appended after them. */
    async readSteps(): Promise<readonly JournalStep[]> {
      planned = []
      const steps = await stored.readSteps()
      nextPosition = (steps.at(-1)?.position ?? -1) + 1
      return steps
    },
    /** Where the next step is written. */
    get nextPosition() {
      return nextPosition + planned.length
    },
    /** The planned steps, and where they are written. */
    get planned() {
      return { position: nextPosition, steps: planned }
    },
    /** Adds steps that `append` writes before its own. */
    plan: (steps: readonly NewJournalStep[]): void => void (planned = [...planned, ...steps]),
    /** Writes the planned steps. */
    flush: () => append([]),
    /** Whether the outcome of a delivery ended the run, as succeeded: nothing may be written after it. */
    get isEnded() {
      return isEnded
    },
    /** Called when a delivery has written the planned steps and its result, and with `succeeded` the end of the run. */
    confirmDelivery(state: RunJournalState): void {
      wrote(planned.length + 1, 'tool_result')
      isEnded = state === 'succeeded'
    },
    /**
     * Writes the steps, all or none, and resolves when they are durable.
     * @throws LeaseLostError when the lease is lost; nothing was written then.
     */
    append,
    appendNote: (code: NoteCode, text: string) => append([toNote(code, text)]),
  }
}
