import type { JournalStep, NewJournalStep } from '@workflow-service/contract'
import type { ActiveLease } from './active-lease.ts'
import type { RunStore } from './run-store.ts'

/** The journal of a run under way (contract README, "The journal"). */
export interface RunJournal {
  /** Reads the steps that are in the database; the next step is appended after them. */
  readSteps(): Promise<readonly JournalStep[]>
  /**
   * Writes the steps, all or none, and resolves when they are durable.
   * @throws LeaseLostError when the lease is lost; nothing was written then.
   */
  append(steps: readonly NewJournalStep[]): Promise<void>
  appendNote(code: string, text: string): Promise<void>
  /** Where the next step is written. */
  readonly nextPosition: number
}

/** Opens the journal of a new run; of any other run, call `readSteps` first. */
export function openJournal(options: {
  readonly store: Pick<RunStore, 'readSteps' | 'appendSteps'>
  readonly lease: ActiveLease
  readonly runId: string
  /** Called after each write with the kind of its last step and the time since the write before. */
  readonly onAppended?: (kind: NewJournalStep['kind'], durationMs: number) => void
}): RunJournal {
  const { store, lease, runId, onAppended } = options
  let nextPosition = 0
  let lastAppendMs = performance.now()

  const append = async (steps: readonly NewJournalStep[]): Promise<void> => {
    const last = steps.at(-1)
    if (!last) return
    await store.appendSteps(lease, runId, nextPosition, steps)
    nextPosition += steps.length
    const nowMs = performance.now()
    onAppended?.(last.kind, nowMs - lastAppendMs)
    lastAppendMs = nowMs
  }
  return {
    async readSteps() {
      const steps = await store.readSteps(lease, runId)
      nextPosition = (steps.at(-1)?.position ?? -1) + 1
      return steps
    },
    get nextPosition() {
      return nextPosition
    },
    append,
    appendNote: (code, text) => append([{ kind: 'note', data: { code, text } }]),
  }
}
