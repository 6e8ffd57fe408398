import { checkPayload, type NewJournalStep, toStorableText } from '@workflow-service/contract'
import {
  type ClaimedRun,
  type ClaimedTrial,
  claimTrial,
  countTrial,
  finishTrial,
  isDatabaseUnavailable,
  MAX_TRIAL_ATTEMPTS,
  releaseTrial,
  serializeStep,
} from '@workflow-service/database'
import { NO_TRACING, type RepeatedTask, describeError, repeat } from '@workflow-service/service-kit'
import type { PayloadResult } from './agent/agent.ts'
import type { RunnerContext } from './runner-context.ts'
import { FileReplacedError, RunError, RunInterruptedError, RunParkedError } from './run-errors.ts'
import { type Attempt, createAgentRun } from './runs/agent-run.ts'
import type { DispatcherClient } from './runs/dispatcher-client.ts'
import { openJournal } from './runs/journal.ts'
import { retryWhileUnavailable } from './runs/retry-while-unavailable.ts'
import type { StoredRun } from './runs/run-store.ts'

/** A model may answer several times. */
const TRIAL_MS = 120_000
export const TRIAL_LEASE_MS = TRIAL_MS + 30_000
const PLANNED_AT_ONCE = 2
const MAX_STEPS_BYTES = 2 * 1_048_576

export type TrialContext = Pick<RunnerContext, 'agent' | 'dispatcher' | 'db' | 'changeNotices' | 'logger' | 'runStore'>

/** Executes what people try, now and every `intervalMs`. */
export function startTrials(ctx: TrialContext, intervalMs: number): Pick<RepeatedTask, 'stop'> {
  return startPlanning({ name: 'execute trials', intervalMs, logger: ctx.logger }, async (signal) => {
    const trial = await claimTrial(ctx.db, TRIAL_LEASE_MS)
    if (trial) await executeTrial(ctx, trial, signal)
    return trial !== undefined
  })
}

/**
 * Plans one thing after another, now and every `intervalMs`: two at once, without the slots of runs. `planNext`
 * resolves to false when there is none.
 */
export function startPlanning(
  task: Pick<Parameters<typeof repeat>[0], 'name' | 'intervalMs' | 'logger'>,
  planNext: (signal: AbortSignal) => Promise<boolean>,
): Pick<RepeatedTask, 'stop'> {
  const run = async (signal: AbortSignal): Promise<void> => {
    for (let isMore = true; isMore && !signal.aborted;) isMore = await planNext(signal)
  }
  const tasks = Array.from({ length: PLANNED_AT_ONCE }, () => repeat({ ...task, run }))
  return { stop: async () => void (await Promise.all(tasks.map((each) => each.stop()))) }
}

async function executeTrial(ctx: TrialContext, { run, rules }: ClaimedTrial, stopping: AbortSignal): Promise<void> {
  const planned = await planRun(ctx, {
    run,
    rules,
    check() {
      if (run.attempts > MAX_TRIAL_ATTEMPTS) throw new RunError('too_many_attempts', 'It ended several runners')
    },
    stopping,
  })
  if (!planned || planned.thrown instanceof FileReplacedError) return await releaseTrial(ctx.db, run)
  const { id, attempts } = run
  const result = { id, attempts, error: planned.error, steps: boundSteps(planned.steps) }
  await recordResult(ctx, stopping, () => finishTrial(ctx.db, result))
  ctx.changeNotices.add(run.organizationId, 'runs')
}

/**
 * Records what was planned, and again while the database is unavailable and the lease is known to last: another
 * process would ask the model again.
 */
export async function recordResult(
  { db }: Pick<TrialContext, 'db'>,
  stopping: AbortSignal,
  record: () => Promise<void>,
): Promise<void> {
  const signal = AbortSignal.any([stopping, AbortSignal.timeout(TRIAL_LEASE_MS - TRIAL_MS)])
  await retryWhileUnavailable({ db, signal }, record)
}

/** A run that is planned without sending. */
interface PlannedRun {
  readonly run: ClaimedRun
  /** A `rules.yaml` in place of the workflow's; null for that. */
  readonly rules: string | null
  /** The files in place of the workflow's. */
  readonly files?: Pick<StoredRun, 'listFiles' | 'readFile'>
  readonly isOfOneModel?: boolean
  /** Throws what the run ends with before it begins. */
  readonly check: () => void
  readonly stopping: AbortSignal
}

/**
 * Plans a run with the journal in memory and without the dispatcher. Resolves to its steps and its error, which is null
 * if it would succeed; undefined if it was interrupted, and has to be planned again.
 */
export async function planRun(
  ctx: TrialContext,
  planned: PlannedRun,
): Promise<{ steps: readonly NewJournalStep[]; error: string | null; thrown?: unknown } | undefined> {
  const steps: NewJournalStep[] = []
  try {
    planned.check()
    await callAgent(ctx, planned, steps)
    return { steps, error: null }
  } catch (thrown) {
    if (planned.stopping.aborted || isDatabaseUnavailable(thrown)) return undefined
    return { steps, error: toErrorText(ctx, planned.run.id, thrown), thrown }
  } finally {
    await countAnswers(ctx, planned.run, steps)
  }
}

/** Counts what models used, also if the trial was interrupted: they are paid for. */
async function countAnswers(
  { db, logger }: Pick<TrialContext, 'db' | 'logger'>,
  { id, organizationId, workflow }: ClaimedRun,
  steps: readonly NewJournalStep[],
): Promise<void> {
  const answers = steps.flatMap(({ kind, data }) => {
    if (kind !== 'model_answer' && kind !== 'session_summary') return []
    const { model, model_name: name = model, key_of: keyOf, cost_micros: cost = 0 } = data
    const tokens = (data.input_tokens ?? 0) + (data.output_tokens ?? 0)
    // The names that the usage of runs has (count-starts.sql).
    return [{ model: keyOf === 'organization' ? `${name}, own key` : name, tokens, cost }]
  })
  await countTrial(db, { organizationId, workflowId: workflow.id, answers }).catch((error: unknown) =>
    logger.warn({ trial_id: id, error: describeError(error) }, 'trial.failed'),
  )
}

/** Calls the agent, whose steps are added to `steps`. @throws what a run would end with. */
async function callAgent(
  { agent, dispatcher, runStore }: Pick<TrialContext, 'agent' | 'dispatcher' | 'runStore'>,
  { run: claimed, rules, files, isOfOneModel = false, stopping }: PlannedRun,
  steps: NewJournalStep[],
): Promise<void> {
  const { id, workflow } = claimed
  const rulesFileId = rules === null ? workflow.rulesFileId : (workflow.rulesFileId ?? id)
  const run = { ...claimed, workflow: { ...workflow, rulesFileId } }
  const signal = AbortSignal.any([stopping, AbortSignal.timeout(TRIAL_MS)])
  // No other process executes a trial, and nothing is written under its lease.
  const lease = {
    sessionId: run.sessionId,
    epoch: 0,
    interrupted: signal,
    abandoned: signal,
    isLost: false,
    isEnding: false,
  }
  const inDatabase = runStore.open(lease, run)
  const { readFile } = files ?? inDatabase
  const stored: StoredRun = {
    ...inDatabase,
    ...files,
    isOfOneModel,
    readSteps: async () => [],
    appendSteps: async (_position, added) => void steps.push(...added),
    recordPrompt: async () => {},
    // A run may wait for the next day or month, a trial does not.
    reserveCost: async (request) => {
      const reservation = await inDatabase.reserveCost(request)
      return reservation.kind === 'exceeded' ? { ...reservation, waitMs: null } : reservation
    },
    readApproval: async () => undefined,
    readFile: async (fileId) => (rules !== null && fileId === rulesFileId ? rules : await readFile(fileId)),
  }
  const journal = openJournal(stored)
  const attempt = { dispatcher: withoutSending(stored, dispatcher), tracing: NO_TRACING, lease, run, stored, journal }
  try {
    await agent(createAgentRun({ ...attempt, steps: [] }))
  } finally {
    await journal.flush()
  }
}

/** A dispatcher that checks each payload as the real one does, and accepts it without sending. Look-ups only read. */
function withoutSending(
  { readSources }: Pick<StoredRun, 'readSources'>,
  { lookUp }: Pick<DispatcherClient, 'lookUp'>,
): Attempt['dispatcher'] {
  return {
    async deliver(_lease, { body: { source_id: sourceId = '', payload = {} } }): Promise<PayloadResult> {
      const [source] = await readSources([sourceId])
      const nothing = { status: null, answer: null }
      if (!source) return { ...nothing, outcome: 'refused', reason: 'The webhook source was deleted' }
      const invalid = checkPayload(source.exampleRequestBody, payload, JSON.stringify(payload))
      return invalid ?? { ...nothing, outcome: 'accepted', reason: null }
    },
    lookUp,
  }
}

/** The steps as PostgreSQL stores them; large ones beyond 2 MiB in all are `{ omitted_bytes }`. */
function boundSteps(steps: readonly NewJournalStep[]) {
  let bytes = 0
  return steps.map(serializeStep).map(({ kind, data }) => {
    bytes += Buffer.byteLength(data)
    const isOmitted = bytes > MAX_STEPS_BYTES && data.length > 4_096
    return { kind, data: isOmitted ? { omitted_bytes: Buffer.byteLength(data) } : (JSON.parse(data) as object) }
  }) as Parameters<typeof finishTrial>[1]['steps']
}

function toErrorText({ logger }: Pick<TrialContext, 'logger'>, id: string, error: unknown): string {
  if (error instanceof RunError) return toStorableText(`${error.code}: ${error.message}`).slice(0, 2_000)
  if (error instanceof RunParkedError) return `model_busy: ${error.message}. Try again later`
  // The runner does not stop, or the trial would be planned again.
  if (error instanceof RunInterruptedError) return 'organization_suspended: The organization is suspended'
  if ((error as Error).name === 'TimeoutError') {
    return `timed_out: The trial took longer than ${TRIAL_MS / 60_000} minutes`
  }
  logger.error({ trial_id: id, error: describeError(error) }, 'trial.failed')
  return 'internal_error: The trial failed. The log of the service has the reason'
}
