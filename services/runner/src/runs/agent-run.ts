import { APPROVAL_DAYS, findStoredExampleError, type JournalStep } from '@workflow-service/contract'
import { PAUSE_DAYS, type SourceForAgent } from '@workflow-service/database'
import type { Tracing } from '@workflow-service/service-kit'
import { type AgentRun, type AgentWebhookSource, SOURCES_PER_READ } from '../agent/agent.ts'
import { RunError, RunParkedError } from '../run-errors.ts'
import { type DeliveringAttempt, deliverInRun } from './deliver-in-run.ts'
import type { DispatcherClient } from './dispatcher-client.ts'
import type { RunStore } from './run-store.ts'

/** Notes that executeRun writes. The agent does not see them: it resumes from its own steps only. */
export const ATTEMPT_NOTES = { resumed: 'taken_up_again', failed: 'attempt_failed' } as const

export interface Attempt extends DeliveringAttempt {
  readonly steps: readonly JournalStep[]
  /**
   * What acquiring the session read of the webhook sources: it answers the first `listSources`. Null: they are many or
   * large.
   */
  readonly prefetchedSources: readonly SourceForAgent[] | null | undefined
}

/** Gives the agent access to the run, and to nothing beyond it. */
export function createAgentRun(
  {
    store,
    dispatcher,
    tracing,
  }: { readonly store: RunStore; readonly dispatcher: DispatcherClient; readonly tracing: Tracing },
  attempt: Attempt,
): AgentRun {
  const { lease, run, journal, steps } = attempt
  const { id, organizationId, sessionId, number, workflow, inputMessage, context, requestId, acceptedAt } = run
  let { prefetchedSources } = attempt
  /** The sources of the last `listSources`, unless they are many or large. */
  let smallSources: readonly SourceForAgent[] | null = null
  const attemptNotes: string[] = Object.values(ATTEMPT_NOTES)

  return {
    run: { id, organizationId, sessionId, workflow, inputMessage, context, requestId, acceptedAt },
    steps: steps.filter((step) => step.kind !== 'note' || !attemptNotes.includes(step.data.code)),
    signal: lease.signal,
    abort: lease.abort,
    history: async (limit) => ({
      runs: await store.listEarlierRuns(lease, organizationId, { number, limit }),
      total: number - 1,
    }),
    readSummary: () => store.readSessionSummary(lease, organizationId, number),
    listSources: async () => {
      smallSources =
        prefetchedSources === undefined ? await store.listSmallSources(lease, organizationId) : prefetchedSources
      prefetchedSources = undefined
      return smallSources ?? (await store.listSourceNames(lease, organizationId))
    },
    readSources: async (sourceIds) => {
      if (sourceIds.length > SOURCES_PER_READ) throw new RangeError(`At most ${SOURCES_PER_READ} sources at once`)
      if (!smallSources) return (await store.readSources(lease, organizationId, sourceIds)).map(toAgentSource)
      const byId = new Map(smallSources.map((source) => [source.id, source]))
      return sourceIds.flatMap((sourceId) => byId.get(sourceId) ?? []).map(toAgentSource)
    },
    searchSources: (words, limit) => store.searchSources(lease, organizationId, words, limit),
    listLookups: () => store.listLookups(lease, organizationId),
    lookUp: ({ lookupId, tool, args }) => {
      const body = { tool, arguments: args, run_id: id }
      return dispatcher.lookUp(lease, { organizationId, lookupId, body, requestId, trace: run.trace })
    },
    readInstructions: (version) => store.readInstructions(lease, organizationId, version),
    readModelKeys: () => store.readModelKeys(lease, organizationId),
    listFiles: () => store.listFiles(lease, organizationId, workflow.id),
    readFile: (fileId) => store.readFile(lease, organizationId, workflow.id, fileId),
    recordPrompt: (prompt) => store.recordPrompt(lease, id, journal.nextPosition, prompt),
    reserveCost: (request) =>
      store.reserveCost(lease, { organizationId, workflowId: workflow.id, runId: id, ...request }),
    settleCost: (turn, cost) => store.settleCost(lease, { organizationId, runId: id, turn, cost }),
    plan: (added) => journal.plan(added),
    append: (added) => journal.append(added),
    readApproval: (deliveryId) => store.readApproval(lease, organizationId, deliveryId),
    async parkForApproval(payloads) {
      await journal.flush()
      const request = { organizationId, runId: id, position: journal.nextPosition, payloads }
      if (!(await store.parkForApproval(lease, request))) return
      throw new RunParkedError('The run waits for an approval', APPROVAL_DAYS * 86_400_000)
    },
    async deliver(request) {
      for (;;) {
        const result = await deliverInRun({ dispatcher, tracing }, attempt, request)
        if (result.outcome !== 'source_paused') return result
        await journal.flush()
        const { source_id: sourceId, source_name: name } = request.call.delivery
        const waiting = { organizationId, runId: id, sourceId, position: journal.nextPosition }
        const outcome = await store.parkForSource(lease, waiting)
        if (outcome === 'parked') throw new RunParkedError('The run waits for a paused source', PAUSE_DAYS * 86_400_000)
        if (outcome === 'expired') throw new RunError('source_paused', `${name} was paused for ${PAUSE_DAYS} days`)
      }
    },
  }
}

/** The sources that are in memory, because runs that begin together share them. */
const agentSources = new WeakMap<SourceForAgent, AgentWebhookSource>()

/**
 * Takes the example out of a source whose example exceeds a limit, so that no agent reads it. Takes under 1 ms for each
 * source, once.
 */
export function toAgentSource(stored: SourceForAgent): AgentWebhookSource {
  let source = agentSources.get(stored)
  if (!source) {
    const { exampleRequestBody, ...rest } = stored
    const exampleError = findStoredExampleError(exampleRequestBody)
    source =
      exampleError === undefined
        ? { ...rest, exampleRequestBody: exampleRequestBody ?? {} }
        : { ...rest, exampleRequestBody: {}, exampleError }
    agentSources.set(stored, source)
  }
  return source
}
