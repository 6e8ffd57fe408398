import type { JournalStep, NewJournalStep, RunPrompt } from '@workflow-service/contract'
import {
  appendSteps,
  type ApprovalRequest,
  type ClaimedRun,
  countAttempt,
  listEarlierRuns,
  listLookupsForAgent,
  listSmallSources,
  listSourceNames,
  listWorkflowFiles,
  type SpentBudget,
  parkForApproval,
  parkForSource,
  type PausedDelivery,
  readApproval,
  readInstructions,
  readModelKeys,
  readSessionSummary,
  readSources,
  readSteps,
  readWorkflowFile,
  recordRunPrompt,
  reserveCost,
  searchSources,
  type SecretBox,
  SecretError,
  type SecretOwner,
  serializeStep,
  settleCost,
  type SourceForAgent,
  type SourceName,
  type SqlDatabase,
  type StepsToAppend,
} from '@workflow-service/database'
import { batchCalls, createKeyedMutex } from '@workflow-service/service-kit'
import type { RunRecords } from '../agent/agent.ts'
import { LeaseLostError } from '../run-errors.ts'
import { type ActiveLease, whileEnding } from './active-lease.ts'
import { batchAtFirst, retryWhileUnavailable } from './retry-while-unavailable.ts'

const MAX_BATCH = 100
const MAX_BATCH_BYTES = 1_048_576

/** What a run reads and writes in the database. */
export interface StoredRun extends RunRecords {
  readSteps(): Promise<readonly JournalStep[]>
  /**
   * Writes the steps, all or none, from `position` on. Resolves when they are durable.
   * @throws LeaseLostError when nothing was written because the lease is lost.
   */
  appendSteps(position: number, steps: readonly NewJournalStep[]): Promise<void>
  /** Records what a model is asked with when the journal's next step is at `position`. */
  recordPrompt(position: number, prompt: RunPrompt): Promise<void>
  /**
   * Increments the attempt counter of the running run and resolves to the new count.
   * @throws LeaseLostError when the lease is lost.
   */
  countAttempt(): Promise<number>
  /** All webhook sources of the organization; null when they are many or large, so that they are read in parts. */
  listSmallSources(): Promise<readonly SourceForAgent[] | null>
  listSourceNames(): Promise<readonly SourceName[]>
  /**
   * Releases the session until the source is resumed, unless it is already, or the run has waited too long.
   * @throws LeaseLostError when nothing was written because the lease is lost.
   */
  parkForSource(request: Pick<PausedDelivery, 'sourceId' | 'position'>): Promise<'parked' | 'resumed' | 'expired'>
  /**
   * Requests approvals and releases the session, unless the first payload was decided.
   * @throws LeaseLostError when nothing was written because the lease is lost.
   */
  parkForApproval(request: Pick<ApprovalRequest, 'position' | 'payloads'>): Promise<'parked' | 'decided'>
}

export type RunStore = ReturnType<typeof createRunStore>

/**
 * Creates the store. Journal writes and source reads of concurrent runs share statements and commits. Every call
 * repeats while the database is unavailable, until the lease is `abandoned`.
 * @param options.onNearlySpent Called once for each budget of which 80 % are spent.
 * @throws SlowStatementError when only this call's statement times out.
 */
export function createRunStore(
  db: SqlDatabase,
  owner: string,
  {
    onNearlySpent = () => {},
    secrets = null,
  }: { onNearlySpent?: (organizationId: string, budget: SpentBudget) => void; secrets?: SecretBox | null } = {},
) {
  const append = batchAtFirst(db, (appends: StepsToAppend[]) => appendSteps(db, owner, appends), {
    maxSize: MAX_BATCH,
    maxBytes: MAX_BATCH_BYTES,
    sizeOf: ({ steps }) => steps.reduce((sum, { data }) => sum + Buffer.byteLength(data), 0),
  })
  const listSources = batchAtFirst(
    db,
    async (organizationIds: string[]) => {
      const sources = await listSmallSources(db, organizationIds)
      return organizationIds.map((organizationId) => sources.get(organizationId) ?? null)
    },
    { maxSize: MAX_BATCH, concurrency: 2 },
  )
  // PostgreSQL decides these of an organization one after the other. Each would wait for that with a connection, which
  // the runs of others and the renewal of leases need.
  const runSpending = createKeyedMutex()
  const listNamesShared = shareReads((organizationId: string) => listSourceNames(db, organizationId))
  const readSourcesShared = shareReads((...of: [organizationId: string, ids: readonly string[]]) =>
    readSources(db, ...of),
  )
  const readFileShared = shareReads((...of: [organizationId: string, workflowId: string, fileId: string]) =>
    readWorkflowFile(db, ...of),
  )

  return {
    /** @param prefetched What acquiring the session read of the sources: it answers the first `listSmallSources`. */
    open(
      lease: ActiveLease,
      run: Pick<ClaimedRun, 'id' | 'organizationId' | 'number' | 'workflow'>,
      prefetched?: readonly SourceForAgent[] | null,
    ): StoredRun {
      const { id: runId, organizationId, number, workflow } = run
      const { sessionId, abandoned } = lease
      const retry = <Result>(operation: (timeouts: number) => Promise<Result>): Promise<Result> =>
        retryWhileUnavailable({ db, signal: abandoned }, operation)
      const park = <Outcome extends string>(operation: () => Promise<Outcome | 'lease_lost'>) =>
        parkLease(lease, () => retry(operation))
      const spending = <Result>(operation: () => Promise<Result>) => retry(() => runSpending(organizationId, operation))
      let firstSources = prefetched
      return {
        readSteps: () => retry(() => readSteps(db, runId)),
        async appendSteps(position, steps) {
          const added = { lease, runId, position, steps: steps.map(serializeStep) }
          if (!(await retry((timeouts) => append(added, timeouts)))) throw new LeaseLostError()
        },
        recordPrompt: (position, prompt) => retry(() => recordRunPrompt(db, runId, position, prompt)),
        reserveCost: (request) =>
          spending(async () => {
            // It may have waited for long: another runner may work on the run now.
            abandoned.throwIfAborted()
            return await reserveCost(db, { organizationId, workflowId: workflow.id, runId, ...request })
          }),
        async settleCost(turn, cost) {
          const nearlySpent = await spending(() => settleCost(db, { organizationId, runId, turn, cost }))
          for (const budget of nearlySpent) onNearlySpent(organizationId, budget)
        },
        async countAttempt() {
          const attempts = await retry(() => countAttempt(db, owner, lease))
          if (attempts === undefined) throw new LeaseLostError()
          return attempts
        },
        history: async (limit) => ({
          runs: await retry(() => listEarlierRuns(db, organizationId, { sessionId, number, limit })),
          total: number - 1,
        }),
        readSummary: () => retry(() => readSessionSummary(db, organizationId, { sessionId, number })),
        async listSmallSources() {
          const first = firstSources
          firstSources = undefined
          return first === undefined ? await retry((timeouts) => listSources(organizationId, timeouts)) : first
        },
        listSourceNames: () => retry(() => listNamesShared(organizationId)),
        readSources: (ids) => retry(() => readSourcesShared(organizationId, ids)),
        searchSources: (words, limit) => retry(() => searchSources(db, organizationId, words, limit)),
        listLookups: () => retry(() => listLookupsForAgent(db, organizationId)),
        readInstructions: (version) => retry(() => readInstructions(db, organizationId, version)),
        readModelKeys: async () =>
          (await retry(() => readModelKeys(db, organizationId))).map(({ id, model, key }) => ({
            id,
            model,
            key: decryptOrNull(secrets, { organizationId, id }, key),
          })),
        listFiles: () => retry(() => listWorkflowFiles(db, organizationId, workflow.id)),
        readFile: (fileId) => retry(() => readFileShared(organizationId, workflow.id, fileId)),
        readApproval: (deliveryId) => retry(() => readApproval(db, organizationId, deliveryId)),
        parkForSource: (request) => park(() => parkForSource(db, owner, { organizationId, runId, lease, ...request })),
        parkForApproval: (request) =>
          park(() => parkForApproval(db, owner, { organizationId, runId, lease, ...request })),
      }
    },
  }
}

/** @throws LeaseLostError when the run was not parked because the lease is lost. */
async function parkLease<Outcome extends string>(
  lease: ActiveLease,
  park: () => Promise<Outcome | 'lease_lost'>,
): Promise<Outcome> {
  const outcome = await whileEnding(lease, park, (parked) => parked === 'parked')
  if (outcome === 'lease_lost') throw new LeaseLostError()
  return outcome
}

/**
 * Lets calls with the same ids in one turn of the event loop share a read: runs that begin together mostly read the
 * same, such as large examples, and 50 reads at once would open connections, which takes several turns each.
 */
function shareReads<Ids extends readonly (string | readonly string[])[], Read>(
  read: (...ids: Ids) => Promise<Read>,
): (...ids: Ids) => Promise<Read> {
  const readAll = batchCalls(
    async (calls: Ids[]) => {
      const reads = new Map<string, Promise<Read>>()
      return calls.map((ids) => {
        const key = ids.flat().join()
        const shared = reads.get(key) ?? read(...ids)
        reads.set(key, shared)
        return shared
      })
    },
    { maxSize: Infinity, concurrency: Infinity },
  )
  return async (...ids) => await readAll(ids)
}

function decryptOrNull(secrets: SecretBox | null, owner: SecretOwner, sealed: Buffer): string | null {
  try {
    return secrets?.decrypt(owner, sealed) ?? null
  } catch (error) {
    if (error instanceof SecretError) return null
    throw error
  }
}
