import type { JournalStep, NewJournalStep } from '@workflow-service/contract'
import type { StoredRun } from './run-store.ts'

/** The journal of a run under way (contract README, "The journal"). */
export interface RunJournal {
  /** Reads the steps that are in the database; the next step is appended after them. */
  readSteps(): Promise<readonly JournalStep[]>
  /**
   * Writes the steps, all or none, and resolves when they are durable.
   * @throws LeaseLostError when the lease is lost; nothing was written then.
   */
  append(steps: readonly NewJournalStep[]): Promise<void>
  /** Adds steps that `append` writes before its own. */
  plan(steps: readonly NewJournalStep[]): void
  /** Writes the planned steps. */
  flush(): Promise<void>
  /** The planned steps, and where they are written. */
  readonly planned: PlannedSteps
  /** Called when a delivery has written the planned steps and its result. */
  confirmDelivery(): void
  appendNote(code: string, text: string): Promise<void>
  /** Where the next step is written. */
  readonly nextPosition: number
}

/** Steps that are not written yet. */
export interface PlannedSteps {
  readonly position: number
  readonly steps: readonly NewJournalStep[]
}

/** Opens the journal of a new run; of any other run, call `readSteps` first. */
export function openJournal(options: {
  readonly stored: Pick<StoredRun, 'readSteps' | 'appendSteps'>
  /** Called after each write with the kind of its last step and the time since the write before. */
  readonly onAppended?: (kind: NewJournalStep['kind'], durationMs: number) => void
}): RunJournal {
  const { stored, onAppended } = options
  let nextPosition = 0
  let planned: NewJournalStep[] = []
  let lastAppendMs = performance.now()

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
    async readSteps() {
      planned = []
      const steps = await stored.readSteps()
      nextPosition = (steps.at(-1)?.position ?? -1) + 1
      return steps
    },
    get nextPosition() {
      return nextPosition + planned.length
    },
    get planned() {
      return { position: nextPosition, steps: planned }
    },
    plan: (steps) => void (planned = [...planned, ...steps]),
    flush: () => append([]),
    confirmDelivery: () => wrote(planned.length + 1, 'tool_result'),
    append,
    appendNote: (code, text) => append([{ kind: 'note', data: { code, text } }]),
  }
}
