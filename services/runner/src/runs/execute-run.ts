import { isNote, type JournalStep, toStorableText } from '@workflow-service/contract'
import { type ClaimedRun, MAX_RUN_ATTEMPTS, type SourceForAgent } from '@workflow-service/database'
import {
  backoff,
  describeError,
  type Logger,
  type SpanAttributes,
  type SpanStart,
  type Tracing,
} from '@workflow-service/service-kit'
import type { Agent, PayloadResult } from '../agent/agent.ts'
import type { RunnerMetrics } from '../metrics.ts'
import { LeaseLostError, RunError, RunInterruptedError, RunParkedError } from '../run-errors.ts'
import type { ActiveLease } from './active-lease.ts'
import { createAgentRun } from './agent-run.ts'
import type { DispatcherClient } from './dispatcher-client.ts'
import { openJournal } from './journal.ts'
import type { RunStore } from './run-store.ts'
import { sleep } from '../sleep.ts'

export interface RunContext {
  readonly agent: Agent
  readonly dispatcher: DispatcherClient
  readonly runStore: RunStore
  readonly timing: { readonly retryMs: number }
  readonly runnerMetrics: RunnerMetrics
  readonly tracing: Tracing
  readonly logger: Logger
}

/** How the run ended, or why this runner leaves it unfinished. */
export type RunOutcome =
  /** `isRecorded`: with the outcome of its last delivery, and the session is released. */
  | { readonly kind: 'succeeded'; readonly isRecorded: boolean }
  | { readonly kind: 'failed'; readonly error: string }
  /** By a RunInterruptedError. The run continues later from its journal. */
  | { readonly kind: 'interrupted' }
  /** The run waits for something that takes long, and continues from its journal after the delay. */
  | { readonly kind: 'parked'; readonly delayMs: number }
  /** Another runner may have the session: nothing more may be written or sent. */
  | { readonly kind: 'lease_lost' }

const MAX_ERROR_LENGTH = 2_000

/**
 * Executes a run under a session lease, from its beginning or from where its journal ends: opens the journal, calls the
 * agent until an attempt ends the run, and resolves to the outcome. Rejects only when the journal cannot be read or
 * written for a reason other than an outage.
 */
export async function executeRun(
  ctx: RunContext,
  lease: ActiveLease,
  run: ClaimedRun,
  prefetchedSources?: readonly SourceForAgent[] | null,
): Promise<RunOutcome> {
  const startedMs = performance.now()
  reportStarted(ctx, run)
  const outcome = await runAttempts(ctx, lease, run, prefetchedSources).then(
    (isRecorded): RunOutcome => ({ kind: 'succeeded', isRecorded }),
    (error: unknown) => toOutcome(lease, error),
  )
  reportEnded(ctx, run, outcome, performance.now() - startedMs)
  return outcome
}

/**
 * Calls the agent, and calls it again after an unexpected error, until it succeeds. Attempts in which a runner died
 * count too. Resolves to whether the success is recorded.
 * @throws the error that ends the run or its stay at this runner: RunError, LeaseLostError, RunInterruptedError or
 *   RunParkedError.
 */
async function runAttempts(
  ctx: RunContext,
  lease: ActiveLease,
  run: ClaimedRun,
  prefetchedSources: readonly SourceForAgent[] | null | undefined,
): Promise<boolean> {
  lease.interrupted.throwIfAborted()
  const { dispatcher, runnerMetrics, tracing, logger } = ctx
  const acceptedMs =
    performance.now() - (run.waitedMs ?? Math.max(0, Date.parse(run.claimedAt) - Date.parse(run.acceptedAt)))
  const stored = ctx.runStore.open(lease, run, prefetchedSources)
  const journal = openJournal(stored, (kind, durationMs) =>
    runnerMetrics.stepDurations.observe({ kind }, durationMs / 1_000),
  )
  let steps = run.isFirst ? [] : await journal.readSteps()
  let hasDelivered = steps.some(isDeliveryOrApproval)
  const onDelivered = ({ durationMs }: PayloadResult): void => {
    if (hasDelivered || typeof durationMs !== 'number') return
    hasDelivered = true
    runnerMetrics.firstDeliveries.observe(Math.max(0, performance.now() - acceptedMs - durationMs) / 1_000)
  }
  const resumed = `Resumed (attempt ${run.attempts}), after `
  // Once for each wait: one for the next month is interrupted every 10 minutes.
  if (!run.isFirst && !isResumedNote(steps.at(-1), resumed)) {
    await journal.appendNote('taken_up_again', `${resumed}${steps.length} steps`)
  }

  let { attempts } = run
  const nextDelayMs = backoff({ firstMs: ctx.timing.retryMs, maxMs: Infinity })
  for (;;) {
    try {
      const attempt = { dispatcher, tracing, lease, run, stored, journal, steps, onDelivered }
      await traceAttempt(tracing, { run, attempts, lease }, () => ctx.agent(createAgentRun(attempt)))
      if (!journal.isEnded) await journal.flush()
      return journal.isEnded
    } catch (error) {
      if (journal.isEnded) return true
      if (endsRun(error)) {
        if (error instanceof RunError) await journal.flush()
        throw error
      }
      logger.error({ ...logFields(run), attempts, error: describeError(error) }, 'run.attempt_failed')
      runnerMetrics.attemptsFailed.inc()
      const message = toErrorText(error instanceof Error ? error.message : String(error))
      if (attempts >= MAX_RUN_ATTEMPTS) throw new RunError('internal_error', message)
      await journal.appendNote('attempt_failed', `Attempt ${attempts} failed: ${message}`)
    }
    await sleep(nextDelayMs(), lease.interrupted)
    attempts = await stored.countAttempt()
    steps = await journal.readSteps()
  }
}

function isResumedNote(step: JournalStep | undefined, beginning: string): boolean {
  return step?.kind === 'note' && isNote(step, 'taken_up_again') && step.data.text.startsWith(beginning)
}

/** Whether the run has sent a payload, or waited for a person. */
function isDeliveryOrApproval(step: JournalStep): boolean {
  return step.kind === 'approval_request' || (step.kind === 'tool_result' && step.data.delivery !== undefined)
}

/** Calls the agent in a span, which is named as the semantic conventions for generative AI name it. */
function traceAttempt(
  tracing: Tracing,
  { run, attempts, lease }: { readonly run: ClaimedRun; readonly attempts: number; readonly lease: ActiveLease },
  callAgent: () => Promise<void>,
): Promise<void> {
  const attributes = {
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.conversation.id': run.sessionId,
    ...attributesOf(run, attempts),
  }
  const start = { name: 'invoke_agent', kind: 'internal', attributes, ...traceOf(run) } as const
  return tracing.trace(start, async (span) => {
    try {
      await callAgent()
      span.set({ 'workflow_service.attempt.outcome': 'succeeded' })
    } catch (error) {
      const outcome = endsRun(error) || lease.isLost ? toOutcome(lease, error).kind : 'failed'
      span.set({ 'workflow_service.attempt.outcome': outcome })
      if (outcome === 'failed') span.fail(error instanceof RunError ? error.code : 'internal_error')
      throw error
    }
  })
}

/** Every attempt is in the trace of the start, or in one of the run's own, whichever process executes it. */
function traceOf(run: ClaimedRun): Pick<SpanStart, 'parent' | 'traceOf'> {
  return { parent: run.trace, traceOf: run.id }
}

function attributesOf(run: ClaimedRun, attempts: number): SpanAttributes {
  return {
    'workflow_service.organization.id': run.organizationId,
    'workflow_service.workflow.id': run.workflow.id,
    'workflow_service.run.id': run.id,
    'workflow_service.run.attempt': attempts,
  }
}

function endsRun(error: unknown): boolean {
  return [RunError, LeaseLostError, RunInterruptedError, RunParkedError].some((kind) => error instanceof kind)
}

function toOutcome(lease: ActiveLease, error: unknown): RunOutcome {
  if (lease.isLost || error instanceof LeaseLostError) return { kind: 'lease_lost' }
  if (error instanceof RunInterruptedError) return { kind: 'interrupted' }
  if (error instanceof RunParkedError) return { kind: 'parked', delayMs: error.delayMs }
  if (error instanceof RunError) return { kind: 'failed', error: toErrorText(`${error.code}: ${error.message}`) }
  throw error
}

/** The span of the wait ends here, so it is exported also if this runner is killed. */
function reportStarted({ logger, runnerMetrics, tracing }: RunContext, run: ClaimedRun): void {
  if (tracing.isOn) {
    const attributes = attributesOf(run, run.attempts)
    tracing.record({ name: 'wait_for_runner', kind: 'internal', attributes, ...traceOf(run) }, run.waitedMs ?? 0)
  }
  logger.debug({ ...logFields(run), number: run.number, attempts: run.attempts }, 'run.started')
  if (run.waitedMs !== null) runnerMetrics.startWaits.observe(run.waitedMs / 1_000)
}

function reportEnded(
  { logger, runnerMetrics }: RunContext,
  run: ClaimedRun,
  outcome: RunOutcome,
  durationMs: number,
): void {
  runnerMetrics.runs.inc({ outcome: outcome.kind })
  runnerMetrics.runDurations.observe({ outcome: outcome.kind }, durationMs / 1_000)
  logger.info(
    {
      ...logFields(run),
      number: run.number,
      attempts: run.attempts,
      outcome: outcome.kind,
      ...(outcome.kind === 'failed' ? { reason: outcome.error } : {}),
      ...(outcome.kind === 'parked' ? { delay_ms: outcome.delayMs } : {}),
      duration_ms: Math.round(durationMs),
    },
    'run.ended',
  )
}

function logFields(run: ClaimedRun): object {
  return {
    run_id: run.id,
    session_id: run.sessionId,
    workflow_id: run.workflow.id,
    organization_id: run.organizationId,
    request_id: run.requestId,
  }
}

/** The text in a form and length that PostgreSQL stores. */
function toErrorText(text: string): string {
  const storable = toStorableText(text)
  return storable.length <= MAX_ERROR_LENGTH ? storable : `${storable.slice(0, MAX_ERROR_LENGTH).toWellFormed()}…`
}
