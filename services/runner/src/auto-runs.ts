import { startDueAutoRuns } from '@workflow-service/database'
import { describeError, newRequestId } from '@workflow-service/service-kit'
import type { AppContext } from './app-context.ts'

/** Starts scheduled runs until it is stopped. */
export interface AutoRuns {
  stop(): Promise<void>
}

const BATCH = 100

/** Looks for schedules that are due every `intervalMs`, by the database's clock, and in UTC. */
export function startAutoRuns(ctx: AppContext, intervalMs: number): AutoRuns {
  const stopping = new AbortController()
  let timer: NodeJS.Timeout | undefined
  let running: Promise<void> = Promise.resolve()

  const look = async (): Promise<void> => {
    try {
      for (let more = true; more && !stopping.signal.aborted;) more = (await startDue(ctx)) === BATCH
    } catch (error) {
      ctx.logger.warn({ error: describeError(error) }, 'could not look for scheduled runs')
    }
  }
  const schedule = (delayMs: number): void => {
    if (stopping.signal.aborted) return
    timer = setTimeout(() => {
      running = look().then(() => schedule(intervalMs))
    }, delayMs)
  }
  schedule(0)
  return {
    async stop() {
      stopping.abort()
      clearTimeout(timer)
      await running
    },
  }
}

async function startDue({ db, logger, runnerMetrics, sessionQueue }: AppContext): Promise<number> {
  const started = await startDueAutoRuns(db, { limit: BATCH, newRequestId })
  for (const { startId, sessionId, workflowId, organizationId, requestId, dueAt } of started) {
    runnerMetrics.autoRuns.inc()
    logger.info(
      {
        run_id: startId,
        session_id: sessionId,
        workflow_id: workflowId,
        organization_id: organizationId,
        request_id: requestId,
        due_at: dueAt,
      },
      'auto_run.started',
    )
    void sessionQueue.publish({ session_id: sessionId }, { requestId })
  }
  return started.length
}
