import type { DeliveryIn, RunJournalState } from '@workflow-service/contract'
import { type ClaimedRun, serializeStep } from '@workflow-service/database'
import type { Tracing } from '@workflow-service/service-kit'
import type { DeliveryRequest, DeliveryResult } from '../agent/agent.ts'
import type { ActiveLease } from './active-lease.ts'
import type { DispatcherClient, DispatcherResult } from './dispatcher-client.ts'
import type { RunJournal } from './journal.ts'

/** An attempt at a run that sends payloads. */
export interface DeliveringAttempt {
  readonly lease: ActiveLease
  readonly run: ClaimedRun
  readonly journal: RunJournal
  /** Called with the result of each delivery that the dispatcher handled. */
  readonly onDelivered: (result: DeliveryResult) => void
  /** Called when the run has succeeded with the outcome of its last delivery: it is recorded. */
  readonly onSucceeded: () => void
}

/** A plan of more bytes is written before its first payload is sent, instead of with it. */
const MAX_PLAN_BYTES = 128 * 1024

/** Sends a payload of the run, with what the dispatcher writes into its journal (`AgentRun.deliver`). */
export function deliverInRun(
  { dispatcher, tracing }: { readonly dispatcher: DispatcherClient; readonly tracing: Tracing },
  { lease, run, journal, onDelivered, onSucceeded }: DeliveringAttempt,
  request: DeliveryRequest,
): Promise<Exclude<DispatcherResult, { outcome: 'journal_unknown' }>> {
  const { id, source_id: sourceId, payload } = request.call.delivery
  const attributes = {
    'workflow_service.delivery.id': id,
    'workflow_service.webhook_source.id': sourceId,
    'workflow_service.run.id': run.id,
  }
  const body: DeliveryIn = {
    organization_id: run.organizationId,
    source_id: sourceId,
    payload,
    run_id: run.id,
    lease: { session_id: run.sessionId, epoch: lease.epoch },
  }
  return tracing.trace({ name: 'deliver', kind: 'client', attributes, parent: run.trace }, async (span) => {
    const send = (given: DeliveryIn) =>
      dispatcher.deliver(lease, { id, body: given, requestId: run.requestId, trace: span.context })
    const full = { ...body, journal: await toJournal(journal, run, request) }
    let written: RunJournalState | undefined
    // The outcome of the last payload may release the lease.
    lease.isEnding = request.isLast
    try {
      let response = await send(full)
      if (response.outcome === 'journal_unknown') {
        await journal.flush()
        response = await send(body)
      }
      if (response.outcome === 'journal_unknown') throw new Error('The dispatcher refuses what it was not sent')
      span.set({ 'workflow_service.delivery.outcome': response.outcome })
      if (response.outcome === 'approval_required' || response.outcome === 'source_paused') return response
      const { journal: state, ...result } = response
      written = state
      if (result.outcome !== 'accepted') span.fail(result.outcome)
      onDelivered(result)
      if (written) journal.confirmDelivery()
      if (written === 'succeeded') onSucceeded()
      return { ...result, isInJournal: written !== undefined }
    } finally {
      lease.isEnding = written === 'succeeded'
    }
  })
}

/** What the dispatcher writes into the journal. A plan that is too large for a request is written first. */
async function toJournal(
  journal: RunJournal,
  { number }: Pick<ClaimedRun, 'number'>,
  { call: { call_id, tool, delivery }, isLast }: DeliveryRequest,
): Promise<DeliveryIn['journal']> {
  let steps = journal.planned.steps.map(serializeStep)
  if (steps.reduce((sum, { data }) => sum + Buffer.byteLength(data), 0) > MAX_PLAN_BYTES) {
    await journal.flush()
    steps = []
  }
  const { position } = journal.planned
  return { position, steps, call_id, tool, source_name: delivery.source_name, last_of_run: isLast ? number : null }
}
