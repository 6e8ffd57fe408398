import type { JournalStep } from '@workflow-service/contract'
import {
  type ClaimedRun,
  listEarlierRuns,
  listWorkflowFiles,
  MAX_ATTEMPTS,
  readSteps,
  readWorkflowFile,
} from '@workflow-service/database'
import { describeError } from '@workflow-service/service-kit'
import { type AgentRun, LeaseLostError, RunError, RunInterruptedError } from './agent/agent.ts'
import type { AppContext } from './app-context.ts'
import type { HeldSession } from './held-sessions.ts'
import { openJournal, type RunJournal } from './journal.ts'
import { patiently, pauseIn } from './patiently.ts'

/** How a run ended, or why this runner leaves it. */
export type RunEnding =
  | { readonly kind: 'succeeded' }
  | { readonly kind: 'failed'; readonly error: string }
  /** The runner stops: the run continues from its journal, here or elsewhere. */
  | { readonly kind: 'interrupted' }
  /** Another runner has the session: nothing more may be written or sent. */
  | { readonly kind: 'lease_lost' }

/** Notes of the run loop itself, which the agent does not see: it knows its own journal only. */
const LOOP_NOTES = ['taken_up_again', 'attempt_failed']

const MAX_ERROR_LENGTH = 2_000

/**
 * Carries out a run, from the beginning or from where its journal ends. An error that nobody foresaw is an attempt that
 * failed: it is tried again, as often as MAX_ATTEMPTS says, runners that died in it included. Never rejects for what
 * the agent does.
 */
export async function carryOutRun(ctx: AppContext, session: HeldSession, run: ClaimedRun): Promise<RunEnding> {
  try {
    if (run.attempts > MAX_ATTEMPTS) return exhausted()
    const steps = run.isFirst ? [] : await patiently(session, () => readSteps(ctx.db, run.id))
    const journal = openRunJournal(ctx, session, run, steps)
    if (!run.isFirst) {
      await note(journal, 'taken_up_again', `Resumed (attempt ${run.attempts}), after ${steps.length} steps`)
    }
    return await attempt(ctx, session, run, steps, journal)
  } catch (error) {
    return toEnding(session, error)
  }
}

async function attempt(
  ctx: AppContext,
  session: HeldSession,
  run: ClaimedRun,
  known: readonly JournalStep[],
  journal: RunJournal,
): Promise<RunEnding> {
  let { attempts } = run
  let steps = known
  for (let delayMs = ctx.timing.retryMs; ; delayMs *= 2) {
    try {
      await ctx.agent(toAgentRun(ctx, session, run, steps, journal))
      return { kind: 'succeeded' }
    } catch (error) {
      if (isEnd(error)) return toEnding(session, error)
      const message = shorten(error instanceof Error ? error.message : String(error))
      ctx.logger.error({ ...runFields(run), attempts, error: describeError(error) }, 'run.attempt_failed')
      ctx.runnerMetrics.attemptsFailed.inc()
      if (attempts >= MAX_ATTEMPTS) return { kind: 'failed', error: `internal_error: ${message}` }
      await note(journal, 'attempt_failed', `Attempt ${attempts} failed: ${message}`)
    } finally {
      // Whoever asks later is told what there is then.
      session.sources = undefined
    }
    await pauseIn(session, delayMs, session.signal)
    attempts = (await patiently(session, () => ctx.store.countAttempt(session.lease))) ?? loseLease()
    steps = await patiently(session, () => readSteps(ctx.db, run.id))
  }
}

/** What the agent may know of the run and do in it. */
function toAgentRun(
  ctx: AppContext,
  session: HeldSession,
  run: ClaimedRun,
  steps: readonly JournalStep[],
  journal: RunJournal,
): AgentRun {
  const { db, dispatcher } = ctx
  const { id, organizationId, sessionId, number, workflow, inputMessage, context, requestId } = run
  const read = <Result>(question: () => Promise<Result>) => patiently(session, question)
  return {
    run: { id, organizationId, sessionId, workflow, inputMessage, context, requestId },
    steps: steps.filter((step) => step.kind !== 'note' || !LOOP_NOTES.includes(step.data.code)),
    signal: session.signal,
    abort: session.abort,
    history: async (limit) => ({
      turns: await read(() => listEarlierRuns(db, organizationId, { sessionId, number, limit })),
      total: number - 1,
    }),
    listSources: async () => {
      const { sources } = session
      session.sources = undefined
      return sources ?? (await read(() => ctx.listSources(organizationId)))
    },
    listFiles: () => read(() => listWorkflowFiles(db, organizationId, workflow.id)),
    readFile: (fileId) => read(() => readWorkflowFile(db, organizationId, workflow.id, fileId)),
    append: (added) => journal.append(added),
    deliver: ({ deliveryId, sourceId, payload }) =>
      dispatcher.deliver(session, {
        id: deliveryId,
        body: {
          organization_id: organizationId,
          source_id: sourceId,
          payload,
          run_id: id,
          lease: { session_id: sessionId, epoch: session.lease.epoch },
        },
        requestId,
      }),
  }
}

function openRunJournal(
  { store, runnerMetrics }: AppContext,
  session: HeldSession,
  run: ClaimedRun,
  steps: readonly JournalStep[],
): RunJournal {
  let beforeMs = performance.now()
  return openJournal({
    session,
    runId: run.id,
    steps,
    store,
    onAppended: (kind) => {
      const nowMs = performance.now()
      runnerMetrics.stepDurations.observe({ kind }, (nowMs - beforeMs) / 1_000)
      beforeMs = nowMs
    },
  })
}

/** What every log line of a run carries. */
export function runFields(run: ClaimedRun): object {
  return {
    run_id: run.id,
    session_id: run.sessionId,
    workflow_id: run.workflow.id,
    organization_id: run.organizationId,
    request_id: run.requestId,
  }
}

function note(journal: RunJournal, code: string, text: string): Promise<void> {
  return journal.append([{ kind: 'note', data: { code, text } }])
}

function exhausted(): RunEnding {
  const error = `too_many_attempts: The run was taken up ${MAX_ATTEMPTS} times and never came to an end; each time its runner died`
  return { kind: 'failed', error }
}

function isEnd(error: unknown): error is RunError | LeaseLostError | RunInterruptedError {
  return error instanceof RunError || error instanceof LeaseLostError || error instanceof RunInterruptedError
}

function toEnding(session: HeldSession, error: unknown): RunEnding {
  if (session.isLost || error instanceof LeaseLostError) return { kind: 'lease_lost' }
  if (error instanceof RunInterruptedError) return { kind: 'interrupted' }
  if (error instanceof RunError) return { kind: 'failed', error: shorten(`${error.code}: ${error.message}`) }
  throw error
}

function loseLease(): never {
  throw new LeaseLostError()
}

/** As text that the database can hold. */
function shorten(text: string): string {
  const storable = text.toWellFormed().replaceAll('\u0000', '\uFFFD')
  return storable.length <= MAX_ERROR_LENGTH ? storable : `${storable.slice(0, MAX_ERROR_LENGTH).toWellFormed()}…`
}
