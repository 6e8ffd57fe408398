import type { JournalStep, NewJournalStep } from '@workflow-service/contract'
import { LeaseLostError } from './agent/agent.ts'
import type { HeldSession } from './held-sessions.ts'
import { patiently } from './patiently.ts'
import type { SessionStore } from './session-store.ts'

/** The journal of a run under way. */
export interface RunJournal {
  /** Writes the steps, all or none, and resolves when they are durable. Waits for a database that is away. */
  append(steps: readonly NewJournalStep[]): Promise<void>
}

/** Opens the journal after the steps that it holds. */
export function openJournal(options: {
  session: HeldSession
  runId: string
  steps: readonly JournalStep[]
  store: Pick<SessionStore, 'append'>
  onAppended?: (kind: NewJournalStep['kind']) => void
}): RunJournal {
  const { session, runId, steps: held, store, onAppended } = options
  const { lease } = session
  let position = (held.at(-1)?.position ?? -1) + 1
  return {
    async append(steps) {
      if (session.isLost) throw new LeaseLostError()
      const last = steps.at(-1)
      if (!last) return
      const isWritten = await patiently(session, () => store.append({ lease, runId, position, steps }))
      if (!isWritten) throw new LeaseLostError()
      position += steps.length
      onAppended?.(last.kind)
    },
  }
}
