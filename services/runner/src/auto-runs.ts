import { type DuePosition, startDueAutoRuns } from '@workflow-service/database'
import { describeError, newRequestId, type RepeatedTask, repeat } from '@workflow-service/service-kit'
import type { RunnerContext } from './runner-context.ts'

const TASK = 'start auto-runs'
const MAX_BATCH = 100

/** Starts due auto-runs, now and every `intervalMs`. Due times are in UTC, by the database's clock. */
export function startAutoRuns(ctx: RunnerContext, intervalMs: number): Pick<RepeatedTask, 'stop'> {
  return repeat({
    name: TASK,
    intervalMs,
    logger: ctx.logger,
    async run(signal) {
      for (let next = await startDue(ctx); next && !signal.aborted;) next = await startDue(ctx, next)
    },
  })
}

/** Starts a batch of due auto-runs, and resolves to the position after which there may be others. */
async function startDue(
  { db, changeNotices, logger, runnerMetrics, sessionQueue }: RunnerContext,
  after?: DuePosition,
): Promise<DuePosition | undefined> {
  const { started, next } = await startDueAutoRuns(db, {
    limit: MAX_BATCH,
    after,
    newRequestId,
    onFailed({ workflowId: workflow_id, organizationId: organization_id }, error) {
      logger.warn({ task: TASK, workflow_id, organization_id, error: describeError(error) }, 'task.failed')
    },
  })
  for (const { startId: run_id, sessionId: session_id, workflowId: workflow_id, ...run } of started) {
    const { organizationId: organization_id, requestId, dueAt: due_at } = run
    runnerMetrics.autoRuns.inc()
    changeNotices.add(organization_id, 'runs', 'sessions')
    const fields = { run_id, session_id, workflow_id, organization_id, request_id: requestId, due_at }
    logger.info(fields, 'auto_run.started')
    void sessionQueue.publish({ session_id }, { requestId })
  }
  return next
}
