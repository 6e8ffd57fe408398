import { OPERATIONS, type PublicRunOut } from '@workflow-service/contract'
import { findPublicRun, findPublicSession } from '@workflow-service/database'
import { ApiError, describeError, onceClosed, orNotFound, sendError, writeJson } from '@workflow-service/service-kit'
import type { Response } from 'express'
import { authorizeAgain } from '../auth/authorize.ts'
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
  ctx: GatewayContext,
  res: Response,
  wait: { readonly organizationId: string; readonly runId: string; readonly waitMs: number },
  text: string,
): void {
  // Its time is the caller's wish, so it has its own row in the metrics.
  res.locals.operationId = 'waitForRun'
  const respond = (body: string): void => {
    const { requestId, responseHeaders: headers } = res.locals
    void writeJson(res, { status: 200, body, requestId, headers })
  }
  const respondLate = async (ended?: PublicRunOut): Promise<void> => {
    try {
      // The key may have been revoked while the request waited.
      await authorizeAgain(ctx)(res.req, res, OPERATIONS.getRun)
      const latest = ended ?? (await ctx.runWaits.read(wait.organizationId, wait.runId))
      // As it was, if it was deleted meanwhile, or the database is unavailable or too slow.
      respond(latest ? JSON.stringify(latest) : text)
    } catch (error) {
      if (error instanceof ApiError && error.status < 500) return sendError(res, error)
      ctx.logger.warn({ task: 'read a run for which a request waited', error: describeError(error) }, 'task.failed')
      // Nothing that was read since: it is unknown whether the key may still read it.
      respond(text)
    }
  }
  const forget = ctx.runWaits.add({
    ...wait,
    onOver: (over) => (over === 'closing' ? respond(text) : void respondLate(over === 'time' ? undefined : over)),
  })
  if (forget) onceClosed(res, forget)
  else void respondLate()
}

/** `GET /v1/sessions/{session_id}`: 404 for a missing session and for one of another organization. */
export function getSession({ db }: Pick<GatewayContext, 'db'>): PublicApiHandlers['getSession'] {
  return async ({ params, principal: { organizationId } }) => ({
    body: orNotFound(await findPublicSession(db, organizationId, params.session_id), 'Session'),
  })
}
