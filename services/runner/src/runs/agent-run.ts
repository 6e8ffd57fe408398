import { APPROVAL_DAYS, type JournalStep } from '@workflow-service/contract'
import { PAUSE_DAYS, type SourceForAgent } from '@workflow-service/database'
import type { Tracing } from '@workflow-service/service-kit'
import type { AgentRun } from '../agent/agent.ts'
import { RunError, RunParkedError } from '../run-errors.ts'
import { type DeliveringAttempt, deliverInRun } from './deliver-in-run.ts'
import type { DispatcherClient } from './dispatcher-client.ts'
import type { StoredRun } from './run-store.ts'

/** Notes that executeRun writes. The agent does not see them: it resumes from its own steps only. */
export const ATTEMPT_NOTES = { resumed: 'taken_up_again', failed: 'attempt_failed' } as const

export interface Attempt extends DeliveringAttempt {
  readonly stored: StoredRun
  readonly steps: readonly JournalStep[]
}

/** Gives the agent access to the run, and to nothing beyond it. */
export function createAgentRun(
  { dispatcher, tracing }: { readonly dispatcher: DispatcherClient; readonly tracing: Tracing },
  attempt: Attempt,
): AgentRun {
  const { lease, run, journal, steps, stored } = attempt
  const { id, organizationId, sessionId, workflow, inputMessage, context, requestId, acceptedAt } = run
  /** The sources of the last `listSources`, unless they are many or large. */
  let smallSources: readonly SourceForAgent[] | null = null
  const attemptNotes: string[] = Object.values(ATTEMPT_NOTES)

  return {
    ...stored,
    run: { id, organizationId, sessionId, workflow, inputMessage, context, requestId, acceptedAt },
    steps: steps.filter((step) => step.kind !== 'note' || !attemptNotes.includes(step.data.code)),
    signal: lease.signal,
    abort: lease.abort,
    listSources: async () => {
      smallSources = await stored.listSmallSources()
      return smallSources ?? (await stored.listSourceNames())
    },
    readSources: async (sourceIds) => {
      if (!smallSources) return await stored.readSources(sourceIds)
      const byId = new Map(smallSources.map((source) => [source.id, source]))
      return sourceIds.flatMap((sourceId) => byId.get(sourceId) ?? [])
    },
    lookUp: ({ lookupId, tool, args }) => {
      const body = { tool, arguments: args, run_id: id }
      return dispatcher.lookUp(lease, { organizationId, lookupId, body, requestId, trace: run.trace })
    },
    recordPrompt: (prompt) => stored.recordPrompt(journal.nextPosition, prompt),
    plan: (added) => journal.plan(added),
    append: (added) => journal.append(added),
    async parkForApproval(payloads) {
      await journal.flush()
      const outcome = await stored.parkForApproval({ position: journal.nextPosition, payloads })
      if (outcome === 'parked') throw new RunParkedError('The run waits for an approval', APPROVAL_DAYS * 86_400_000)
    },
    async deliver(request) {
      for (;;) {
        const result = await deliverInRun({ dispatcher, tracing }, attempt, request)
        if (result.outcome !== 'source_paused') return result
        await journal.flush()
        const { source_id: sourceId, source_name: name } = request.call.delivery
        const outcome = await stored.parkForSource({ sourceId, position: journal.nextPosition })
        if (outcome === 'parked') throw new RunParkedError('The run waits for a paused source', PAUSE_DAYS * 86_400_000)
        if (outcome === 'expired') throw new RunError('source_paused', `${name} was paused for ${PAUSE_DAYS} days`)
      }
    },
  }
}
