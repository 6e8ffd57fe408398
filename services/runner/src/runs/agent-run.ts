import { APPROVAL_DAYS, type DeliveryIn, describeNote, type JournalStep } from '@workflow-service/contract'
import { type ClaimedRun, PAUSE_DAYS, serializeStep, type SourceForAgent } from '@workflow-service/database'
import type { Tracing } from '@workflow-service/service-kit'
import type { AgentRun, DeliveryCall, PayloadResult } from '../agent/agent.ts'
import { RunError, RunParkedError } from '../run-errors.ts'
import { type ActiveLease, whileEnding } from './active-lease.ts'
import type { DispatcherClient, DispatcherResult } from './dispatcher-client.ts'
import type { RunJournal } from './journal.ts'
import type { StoredRun } from './run-store.ts'

export interface Attempt {
  readonly dispatcher: Omit<DispatcherClient, 'close'>
  readonly tracing: Tracing
  readonly lease: ActiveLease
  readonly run: ClaimedRun
  readonly stored: StoredRun
  readonly journal: RunJournal
  readonly steps: readonly JournalStep[]
  /** Called with the result of each delivery that the dispatcher handled. */
  readonly onDelivered?: (result: PayloadResult) => void
}

/** Gives the agent access to the run, and to nothing beyond it. */
export function createAgentRun(attempt: Attempt): AgentRun {
  const { dispatcher, lease, run, journal, steps, stored } = attempt
  const { id, organizationId, sessionId, workflow, inputMessage, context, requestId, acceptedAt, claimedAt } = run
  /** The sources of the last `listSources`, unless they are many or large. */
  let smallSources: readonly SourceForAgent[] | null = null

  return {
    ...stored,
    id,
    organizationId,
    sessionId,
    workflow,
    inputMessage,
    context,
    requestId,
    acceptedAt,
    claimedAt,
    // The agent resumes from its own steps only.
    steps: steps.filter(({ kind, data }) => kind !== 'note' || !describeNote(data.code)?.isOfAttempt),
    interrupted: lease.interrupted,
    abandoned: lease.abandoned,
    listSources: async () => {
      smallSources = await stored.listSmallSources()
      return smallSources ?? (await stored.listSourceNames())
    },
    readSources: async (sourceIds) => {
      if (!smallSources) return await stored.readSources(sourceIds)
      const byId = new Map(smallSources.map((source) => [source.id, source]))
      return sourceIds.flatMap((sourceId) => byId.get(sourceId) ?? [])
    },
    lookUp: ({ id: lookup_id, tool }, args) => {
      const params = { organization_id: organizationId, lookup_id }
      const body = { tool, arguments: args, run_id: id }
      return dispatcher.lookUp(lease, { params, body, requestId, trace: run.trace })
    },
    recordPrompt: (prompt) => stored.recordPrompt(journal.nextPosition, prompt),
    plan: (added) => journal.plan(added),
    append: (added) => journal.append(added),
    async parkForApproval(payloads) {
      await journal.flush()
      const outcome = await stored.parkForApproval({ position: journal.nextPosition, payloads })
      if (outcome === 'parked') throw new RunParkedError('The run waits for an approval', APPROVAL_DAYS * 86_400_000)
    },
    async deliver(call, isLast) {
      for (;;) {
        const result = await deliver(attempt, call, isLast)
        if (result.outcome !== 'source_paused') return result
        await journal.flush()
        const { source_id: sourceId, source_name: name } = call.delivery
        const outcome = await stored.parkForSource({ sourceId, position: journal.nextPosition })
        if (outcome === 'parked') throw new RunParkedError('The run waits for a paused source', PAUSE_DAYS * 86_400_000)
        if (outcome === 'expired') {
          const why = `A payload waited ${PAUSE_DAYS} days for ${name}, which is paused, and was not sent`
          throw new RunError('source_paused', why)
        }
      }
    },
  }
}

/** A plan of more bytes is written before its first payload is sent, instead of with it. */
const MAX_PLAN_BYTES = 128 * 1024

/** Sends a payload of the run, with what the dispatcher writes into its journal. */
function deliver(
  { dispatcher, tracing, lease, run, journal, onDelivered }: Attempt,
  { call_id, tool, delivery }: DeliveryCall,
  isLast: boolean,
): Promise<Exclude<DispatcherResult, { outcome: 'journal_unknown' }>> {
  const { id: delivery_id, source_id, source_name, payload } = delivery
  const attributes = {
    'workflow_service.delivery.id': delivery_id,
    'workflow_service.webhook_source.id': source_id,
    'workflow_service.run.id': run.id,
  }
  const body: DeliveryIn = {
    organization_id: run.organizationId,
    source_id,
    payload,
    run_id: run.id,
    lease: { session_id: run.sessionId, epoch: lease.epoch },
  }
  return tracing.trace({ name: 'deliver', kind: 'client', attributes, parent: run.trace }, async (span) => {
    const call = { params: { delivery_id }, body, requestId: run.requestId, trace: span.context }
    const last_of_run = isLast ? run.number : null
    const withJournal = { ...body, journal: { ...(await readPlan(journal)), call_id, tool, source_name, last_of_run } }
    const send = async () => {
      let result = await dispatcher.deliver(lease, { ...call, body: withJournal })
      if (result.outcome === 'journal_unknown') {
        // A dispatcher of 1.0.0 does not write the plan: write it before that dispatcher sends the payload.
        await journal.flush()
        result = await dispatcher.deliver(lease, call)
      }
      if (result.outcome === 'journal_unknown') {
        throw new Error('The dispatcher refuses a delivery that the runner sent. Update both to the same release.')
      }
      span.set({ 'workflow_service.delivery.outcome': result.outcome })
      if (result.outcome === 'approval_required' || result.outcome === 'source_paused') return result
      if (result.outcome !== 'accepted') span.fail(result.outcome)
      onDelivered?.(result)
      if (result.journal) journal.confirmDelivery(result.journal)
      return result
    }
    // The outcome of the last payload may release the lease.
    return await (isLast ? whileEnding(lease, send, () => journal.isEnded) : send())
  })
}

/** The planned steps, for the dispatcher to write. Those that are too large for a request are written first. */
async function readPlan(journal: RunJournal): Promise<Pick<NonNullable<DeliveryIn['journal']>, 'position' | 'steps'>> {
  let steps = journal.planned.steps.map(serializeStep)
  if (steps.reduce((sum, { data }) => sum + Buffer.byteLength(data), 0) > MAX_PLAN_BYTES) {
    await journal.flush()
    steps = []
  }
  return { position: journal.planned.position, steps }
}
