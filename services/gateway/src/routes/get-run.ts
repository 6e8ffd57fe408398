import { findPublicRun, findPublicSession } from '@workflow-service/database'
import { describeError, onceClosed, orNotFound, writeJson } from '@workflow-service/service-kit'
import type { GatewayContext } from '../gateway-context.ts'
import type { PublicApiHandlers } from './operation-handlers.ts'

/**
 * `GET /v1/runs/{run_id}` (contract README, "Public API"): 404 for a missing run and for one of another organization. A
 * request that waits holds neither a slot nor a database connection.
 */
export function getRun({ db, runWaits, logger }: GatewayContext): PublicApiHandlers['getRun'] {
  return async ({ params: { run_id: runId }, query: { wait = 0 }, principal: { organizationId }, requestId }) => {
    const run = orNotFound(await findPublicRun(db, organizationId, runId), 'Run')
    if (wait === 0 || run.finished_at !== null) return { body: run }
    return {
      stream(_req, res) {
        // Its time is the caller's wish, so it has its own row in the metrics.
        res.locals.operationId = 'waitForRun'
        const answer = (latest: object): void =>
          writeJson(res, {
            status: 200,
            body: JSON.stringify(latest),
            requestId,
            headers: res.locals.answerHeaders,
          })
        const readAndAnswer = async (): Promise<void> => {
          const latest = await findPublicRun(db, organizationId, runId).catch((error: unknown) => {
            logger.warn({ task: 'read a run for which a request waited', error: describeError(error) }, 'task.failed')
            return undefined
          })
          // As it was, if it was deleted meanwhile or the database is unavailable.
          answer(latest ?? run)
        }
        const forget = runWaits.add({
          organizationId,
          runId,
          waitMs: wait * 1_000,
          onOver: (over) => (over === 'time' ? void readAndAnswer() : answer(over === 'closing' ? run : over)),
        })
        if (forget) onceClosed(res, forget)
        else void readAndAnswer()
      },
    }
  }
}

/** `GET /v1/sessions/{session_id}`: 404 for a missing session and for one of another organization. */
export function getSession({ db }: Pick<GatewayContext, 'db'>): PublicApiHandlers['getSession'] {
  return async ({ params, principal: { organizationId } }) => ({
    body: orNotFound(await findPublicSession(db, organizationId, params.session_id), 'Session'),
  })
}
