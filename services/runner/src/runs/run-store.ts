import type { JournalStep, NewJournalStep, RunPrompt } from '@workflow-service/contract'
import {
  appendSteps,
  type ApprovalRequest,
  type ApprovalState,
  type CostRequest,
  type CostReservation,
  countAttempt,
  type SpentBudget,
  type EarlierRun,
  type FoundSource,
  type Instructions,
  listEarlierRuns,
  listLookupsForAgent,
  listSmallSources,
  listSourceNames,
  listWorkflowFiles,
  type LookupForAgent,
  parkForApproval,
  parkForSource,
  type PausedDelivery,
  readApproval,
  readInstructions,
  readModelKeys,
  type SqlDatabase,
  readSessionSummary,
  readSources,
  readSteps,
  readWorkflowFile,
  reserveCost,
  recordRunPrompt,
  searchSources,
  SecretError,
  type SecretBox,
  type SecretOwner,
  serializeStep,
  settleCost,
  type SourceForAgent,
  type SourceName,
  type StepsToAppend,
  type WorkflowFile,
} from '@workflow-service/database'
import { batchCalls } from '@workflow-service/service-kit'
import type { OwnModelKey } from '../agent/agent.ts'
import { LeaseLostError } from '../run-errors.ts'
import type { ActiveLease } from './active-lease.ts'
import { isItemError, retryWhileUnavailable } from './retry-while-unavailable.ts'

const MAX_BATCH = 100
const MAX_BATCH_BYTES = 1_048_576

/** Repeats a statement while the database is unavailable. */
type Retry = <Result>(lease: ActiveLease, operation: (timeouts: number) => Promise<Result>) => Promise<Result>

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

/** What a run reads. */
function createReads(db: SqlDatabase, retry: Retry, secrets: SecretBox | null) {
  const names = shareReads((organizationId: string) => listSourceNames(db, organizationId))
  const sources = shareReads((organizationId: string, ids: readonly string[]) => readSources(db, organizationId, ids))
  const files = shareReads((...of: [organizationId: string, workflowId: string, fileId: string]) =>
    readWorkflowFile(db, ...of),
  )
  return {
    listSourceNames: (lease: ActiveLease, organizationId: string): Promise<readonly SourceName[]> =>
      retry(lease, () => names(organizationId)),
    readSources: (lease: ActiveLease, organizationId: string, ids: readonly string[]) =>
      retry<readonly SourceForAgent[]>(lease, () => sources(organizationId, ids)),
    /** The sources whose names or descriptions have one of the words in lower case, the best match first. */
    searchSources: (lease: ActiveLease, organizationId: string, words: readonly string[], limit: number) =>
      retry<readonly FoundSource[]>(lease, () => searchSources(db, organizationId, words, limit)),
    listLookups: (lease: ActiveLease, organizationId: string) =>
      retry<readonly LookupForAgent[]>(lease, () => listLookupsForAgent(db, organizationId)),
    readInstructions: (lease: ActiveLease, organizationId: string, number?: number) =>
      retry<Instructions | undefined>(lease, () => readInstructions(db, organizationId, number)),
    /** The organization's own keys, decrypted. */
    readModelKeys: async (lease: ActiveLease, organizationId: string): Promise<readonly OwnModelKey[]> =>
      (await retry(lease, () => readModelKeys(db, organizationId))).map(({ id, model, key }) => ({
        id,
        model,
        key: decryptOrNull(secrets, { organizationId, sourceId: id }, key),
      })),
    listFiles: (lease: ActiveLease, organizationId: string, workflowId: string) =>
      retry<readonly WorkflowFile[]>(lease, () => listWorkflowFiles(db, organizationId, workflowId)),
    readFile: (lease: ActiveLease, organizationId: string, workflowId: string, fileId: string) =>
      retry<string | undefined>(lease, () => files(organizationId, workflowId, fileId)),
    readApproval: (lease: ActiveLease, organizationId: string, deliveryId: string) =>
      retry<ApprovalState | undefined>(lease, () => readApproval(db, organizationId, deliveryId)),
  }
}

function decryptOrNull(secrets: SecretBox | null, owner: SecretOwner, sealed: Buffer): string | null {
  try {
    return secrets?.decrypt(owner, sealed) ?? null
  } catch (error) {
    if (error instanceof SecretError) return null
    throw error
  }
}

/** What a run reads and writes. */
export type RunStore = ReturnType<typeof createRunStore>

/** Called once for each budget of which 80 % are spent. */
type OnNearlySpent = (organizationId: string, budget: SpentBudget) => void

/**
 * Creates the store. Journal writes and source reads of concurrent runs share statements and commits. Every call
 * repeats while the database is unavailable, until the lease's `abort`.
 * @throws SlowStatementError when only this call's statement times out.
 */
export function createRunStore(
  db: SqlDatabase,
  owner: string,
  { onNearlySpent = () => {}, secrets = null }: { onNearlySpent?: OnNearlySpent; secrets?: SecretBox | null } = {},
) {
  const appendBatched = batchCalls((appends: StepsToAppend[]) => appendSteps(db, owner, appends), {
    maxSize: MAX_BATCH,
    maxBytes: MAX_BATCH_BYTES,
    sizeOf: ({ steps }) => steps.reduce((sum, { data }) => sum + Buffer.byteLength(data), 0),
    isItemError: isItemError(db),
  })
  const appendAlone = async (append: StepsToAppend): Promise<boolean> =>
    (await appendSteps(db, owner, [append]))[0] ?? false
  const listSourcesBatched = batchCalls(
    async (organizationIds: string[]) => {
      const sources = await listSmallSources(db, organizationIds)
      return organizationIds.map((organizationId) => sources.get(organizationId) ?? null)
    },
    { maxSize: MAX_BATCH, concurrency: 2, isItemError: isItemError(db) },
  )
  const retry: Retry = ({ abort }, operation) => retryWhileUnavailable({ db, signal: abort }, operation)

  return {
    readSteps: (lease: ActiveLease, runId: string): Promise<readonly JournalStep[]> =>
      retry(lease, () => readSteps(db, runId)),
    /**
     * Writes the steps, all or none, from `position` on. Resolves when they are durable.
     * @throws LeaseLostError when nothing was written because the lease is lost.
     */
    async appendSteps(lease: ActiveLease, runId: string, position: number, steps: readonly NewJournalStep[]) {
      const append = { lease, runId, position, steps: steps.map(serializeStep) }
      const isWritten = await retry(lease, (timeouts) => (timeouts === 0 ? appendBatched(append) : appendAlone(append)))
      if (!isWritten) throw new LeaseLostError()
    },
    /** Records what a model is asked with when the journal's next step is at `position`. */
    recordPrompt: (lease: ActiveLease, runId: string, position: number, prompt: RunPrompt) =>
      retry(lease, () => recordRunPrompt(db, runId, position, prompt)),
    reserveCost: (lease: ActiveLease, request: CostRequest): Promise<CostReservation> =>
      retry(lease, () => reserveCost(db, request)),
    async settleCost(lease: ActiveLease, settled: Parameters<typeof settleCost>[1]): Promise<void> {
      const nearlySpent = await retry(lease, () => settleCost(db, settled))
      for (const budget of nearlySpent) onNearlySpent(settled.organizationId, budget)
    },
    /**
     * Increments the attempt counter of the running run and resolves to the new count.
     * @throws LeaseLostError when the lease is lost.
     */
    async countAttempt(lease: ActiveLease): Promise<number> {
      const attempts = await retry(lease, () => countAttempt(db, owner, lease))
      if (attempts === undefined) throw new LeaseLostError()
      return attempts
    },
    /** The newest `limit` finished runs of the session before run `number`, oldest first. */
    listEarlierRuns: (
      lease: ActiveLease,
      organizationId: string,
      range: { readonly number: number; readonly limit: number },
    ): Promise<readonly EarlierRun[]> =>
      retry(lease, () => listEarlierRuns(db, organizationId, { sessionId: lease.sessionId, ...range })),
    /** The newest summary of the session in the journals of the runs before run `number`. */
    readSessionSummary: (lease: ActiveLease, organizationId: string, number: number) =>
      retry(lease, () => readSessionSummary(db, organizationId, { sessionId: lease.sessionId, number })),
    /** All webhook sources of the organization; null when they are many or large, so that they are read in parts. */
    listSmallSources: (lease: ActiveLease, organizationId: string): Promise<readonly SourceForAgent[] | null> =>
      retry(lease, () => listSourcesBatched(organizationId)),
    ...createReads(db, retry, secrets),
    /**
     * Releases the session until the source is resumed, unless it is already, or the run has waited too long.
     * @throws LeaseLostError when nothing was written because the lease is lost.
     */
    async parkForSource(lease: ActiveLease, request: Omit<PausedDelivery, 'lease'>) {
      lease.isEnding = true
      const outcome = await retry(lease, () => parkForSource(db, owner, { ...request, lease }))
      if (outcome === 'lease_lost') throw new LeaseLostError()
      lease.isEnding = outcome === 'parked'
      return outcome
    },
    /**
     * Requests approvals and releases the session, unless the first payload was decided: then resolves to false.
     * @throws LeaseLostError when nothing was written because the lease is lost.
     */
    async parkForApproval(lease: ActiveLease, request: Omit<ApprovalRequest, 'lease'>): Promise<boolean> {
      lease.isEnding = true
      const outcome = await retry(lease, () => parkForApproval(db, owner, { ...request, lease }))
      if (outcome === 'lease_lost') throw new LeaseLostError()
      lease.isEnding = outcome === 'parked'
      return lease.isEnding
    },
  }
}
