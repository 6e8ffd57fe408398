import { findPublicRun, findPublicSession } from '@workflow-service/database'
import { describeError, onceClosed, orNotFound, writeJson } from '@workflow-service/service-kit'
import type { Response } from 'express'
import type { GatewayContext } from '../gateway-context.ts'
import type { PublicApiHandlers } from './operation-handlers.ts'

/**
 * `GET /v1/runs/{run_id}` (contract README, "Public API"): 404 for a missing run and for one of another organization. A
 * request that waits holds neither a slot nor a database connection.
 */
export function getRun(ctx: GatewayContext): PublicApiHandlers['getRun'] {
  return async ({ params: { run_id: runId }, query: { wait = 0 }, principal: { organizationId } }) => {
    const run = orNotFound(await findPublicRun(ctx.db, organizationId, runId), 'Run')
    if (wait === 0 || run.finished_at !== null) return { body: run }
    // As text: the object would take more memory for as long as the request waits.
    const text = JSON.stringify(run)
    return { stream: (_req, res) => waitForEnd(ctx, res, { organizationId, runId, waitMs: wait * 1_000 }, text) }
  }
}

/** Answers when the run has ended or the time is over. `text`: the run as it was. */
function waitForEnd(
  { db, runWaits, logger }: GatewayContext,
  res: Response,
  wait: { readonly organizationId: string; readonly runId: string; readonly waitMs: number },
  text: string,
): void {
  // Its time is the caller's wish, so it has its own row in the metrics.
  res.locals.operationId = 'waitForRun'
  const answer = (body: string): void => {
    const { requestId, answerHeaders: headers } = res.locals
    void writeJson(res, { status: 200, body, requestId, headers })
  }
  const readAndAnswer = async (): Promise<void> => {
    const latest = await findPublicRun(db, wait.organizationId, wait.runId).catch((error: unknown) => {
      logger.warn({ task: 'read a run for which a request waited', error: describeError(error) }, 'task.failed')
      return undefined
    })
    // As it was, if it was deleted meanwhile or the database is unavailable.
    answer(latest ? JSON.stringify(latest) : text)
  }
  const forget = runWaits.add({
    ...wait,
    onOver: (over) =>
      over === 'time' ? void readAndAnswer() : answer(over === 'closing' ? text : JSON.stringify(over)),
  })
  if (forget) onceClosed(res, forget)
  else void readAndAnswer()
}

/** `GET /v1/sessions/{session_id}`: 404 for a missing session and for one of another organization. */
export function getSession({ db }: Pick<GatewayContext, 'db'>): PublicApiHandlers['getSession'] {
  return async ({ params, principal: { organizationId } }) => ({
    body: orNotFound(await findPublicSession(db, organizationId, params.session_id), 'Session'),
  })
}
