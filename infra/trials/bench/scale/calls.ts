import {
  acquireSessions,
  acquireWaitingSessions,
  appendSteps,
  claimDeliveries,
  type Database,
  deleteOldDeliveries,
  deleteOldIdempotencyKeys,
  deleteOldJournals,
  deleteOldRuns,
  deleteOldSessions,
  finishRuns,
  listDeliveries,
  listRuns,
  listSessions,
  listVisibleDeliveries,
  listVisibleRuns,
  findVisibleDelivery,
  findVisibleRun,
  markAbandonedDeliveries,
  measureBacklog,
  newId,
  readOverview,
  readUsage,
  recordOutcomes,
  recordStarts,
  serializeStep,
} from '@workflow-service/database'
import type { LargeTables } from './seed-large-tables.ts'
import type { Measure } from './statement-cost.ts'

type Step = Parameters<typeof serializeStep>[0]

const OWNER = 'bench'
const DAY_MS = 86_400_000

/** Takes this many starts in new sessions through all statements of a run with one delivery. */
export async function runStarts(
  db: Database,
  { organizationId, apiKeyId, workflowId, sourceId }: LargeTables,
  count: number,
  measure: Measure,
): Promise<void> {
  const name = (text: string): string => `${text}, ${count} at once`
  const requests = Array.from({ length: count }, () => ({
    organizationId,
    start: {
      startId: newId(),
      workflowId,
      sessionId: null,
      newSessionId: newId(),
      context: 'order_id: A-1\ncustomer: Ada Lovelace',
      apiKeyId,
      requestId: newId(),
      idempotency: null,
    },
  }))
  await measure(name('record starts'), () => recordStarts(db, requests))
  const options = {
    owner: OWNER,
    leaseMs: 60_000,
    slots: 10_000,
    maxPerOrganization: 10_000,
    leasedByOrganization: new Map<string, number>(),
  }
  const sessions = requests.map(({ start }) => start.newSessionId)
  const acquired = await measure(name('acquire sessions'), () => acquireSessions(db, options, sessions))
  const runs = acquired.sessions.map(({ lease, run }) => ({ lease, runId: run!.id, deliveryId: newId() }))
  type Run = (typeof runs)[number]
  const append = async (text: string, position: number, stepsOf: (run: Run) => Step[]): Promise<unknown> => {
    const steps = runs.map((run) => {
      const { lease, runId } = run
      return { lease, runId, position, steps: stepsOf(run).map((step) => serializeStep(step)) }
    })
    return await measure(name(text), () => appendSteps(db, OWNER, steps))
  }
  const payload = { order_id: 'A-1', customer: 'Ada Lovelace', text: 'example' }
  const source = { source_id: sourceId, source_name: 'Source' }
  const call = { call_id: '1', tool: 'send' }
  await append('append steps', 0, ({ deliveryId }) => [
    { kind: 'message', data: { agent: 'builtin', text: 'New order\n\norder_id: A-1\ncustomer: Ada Lovelace' } },
    { kind: 'tool_call', data: { ...call, delivery: { id: deliveryId, ...source, payload } } },
  ])
  const claims = runs.map(({ lease, runId, deliveryId }) => ({
    id: deliveryId,
    organizationId,
    sourceId,
    requestBody: JSON.stringify(payload),
    runId,
    requestId: runId,
    lease,
    resend: null,
  }))
  await measure(name('claim deliveries'), () => claimDeliveries(db, claims))
  const accepted = { outcome: 'accepted', status: 200, reason: null } as const
  const result = { ...accepted, mismatches: null, durationMs: 12, answer: '{"ok":true}' }
  const outcomes = runs.map(({ deliveryId }) => ({ organizationId, id: deliveryId, result }))
  await measure(name('record outcomes'), () => recordOutcomes(db, outcomes))
  await append('append results', 2, ({ deliveryId }) => [
    {
      kind: 'tool_result',
      data: {
        ...call,
        ok: true,
        text: 'Accepted with status 200.',
        delivery: { id: deliveryId, ...source, ...accepted, answer: null },
      },
    },
  ])
  const endings = runs.map(
    ({ lease }) => ({ lease, number: 1, status: 'succeeded', error: null, shouldClaimNext: true }) as const,
  )
  await measure(name('finish runs'), () => finishRuns(db, OWNER, endings))
}

/** Reads what the API, the application and `wf` show of the first organization, which has half of all rows. */
export async function readLists(
  db: Database,
  { organizationId, workflowId, sourceId }: LargeTables,
  { seededDays, runId, deliveryId }: { seededDays: number; runId: string; deliveryId: string },
  measure: Measure,
): Promise<void> {
  const admin = { organizationId, memberId: null }
  const limit = 25
  const after = { createdAt: new Date(Date.now() - (seededDays / 2) * DAY_MS), id: newId() }
  await measure('application: runs', () => listVisibleRuns(db, admin, { limit }))
  await measure('application: runs, in the middle', () => listVisibleRuns(db, admin, { limit, after }))
  await measure('application: failed runs', () => listVisibleRuns(db, admin, { limit, status: 'failed' }))
  await measure('application: runs of a workflow', () => listVisibleRuns(db, admin, { limit, workflowId }))
  await measure('application: a run', () => findVisibleRun(db, admin, runId))
  await measure('application: sessions', () => listSessions(db, admin, { limit }))
  await measure('application: log', () => listVisibleDeliveries(db, admin, { sourceId, limit }))
  await measure('application: log, rejected', () =>
    listVisibleDeliveries(db, admin, { sourceId, limit, outcome: 'rejected' }),
  )
  await measure('application: a delivery', () => findVisibleDelivery(db, admin, deliveryId))
  await measure('application: overview', () => readOverview(db, admin))
  await measure('application: usage of 7 days', () => readUsage(db, admin, { by: 'workflow' }))
  await measure('internal API: log', () => listDeliveries(db, organizationId, { sourceId, limit }))
  await measure('internal API: log, in the middle', () =>
    listDeliveries(db, organizationId, { sourceId, limit, after }),
  )
  await measure('wf runs list', () => listRuns(db, organizationId, { limit }))
  await measure('wf runs list, failed', () => listRuns(db, organizationId, { limit, status: 'failed' }))
}

/** What the services do every few seconds or minutes, although there is nothing to do. */
export async function sweep(db: Database, measure: Measure): Promise<void> {
  const options = { owner: OWNER, leaseMs: 60_000, slots: 50, maxPerOrganization: 50, leasedByOrganization: new Map() }
  await measure('sweep for sessions', () => acquireWaitingSessions(db, options))
  await measure('sweep for abandoned deliveries', () => markAbandonedDeliveries(db, { olderThanMs: 60_000 }))
  await measure('count the backlog', () => measureBacklog(db))
  await measure('delete Idempotency-Keys', () => deleteOldIdempotencyKeys(db, 2_000))
}

/** Deletes one batch of each kind. Resolves to how many rows. */
export async function retire(
  db: Database,
  { organizationId }: LargeTables,
  { olderThanDays, batchSize }: { olderThanDays: number; batchSize: number },
  measure: Measure,
): Promise<{ deliveries: number; journals: number; runs: number; sessions: number }> {
  const name = (text: string): string => `delete ${text}, ${batchSize.toLocaleString('en')} at once`
  const batch = { organizationId, olderThanDays, batchSize }
  const deliveries = await measure(name('deliveries'), () => deleteOldDeliveries(db, { olderThanDays, batchSize }))
  const journals = await measure(name('journals'), () => deleteOldJournals(db, batch))
  const runs = await measure(name('runs'), () => deleteOldRuns(db, batch))
  const sessions = await measure(name('sessions'), () => deleteOldSessions(db, batch))
  return { deliveries, journals: journals.deleted, runs: runs.deleted, sessions: sessions.deleted }
}
