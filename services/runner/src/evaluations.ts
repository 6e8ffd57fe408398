import { CASE_MAX_BYTES, comparePayloads } from '@workflow-service/contract'
import {
  type CaseResult,
  type ClaimedCase,
  claimCase,
  finishCase,
  listAcceptedPayloads,
  MAX_CASE_ATTEMPTS,
  readContents,
  releaseCase,
} from '@workflow-service/database'
import type { RepeatedTask } from '@workflow-service/service-kit'
import { listData } from './agent/agent-steps.ts'
import { RunError, RunParkedError } from './run-errors.ts'
import { planRun, recordResult, startPlanning, TRIAL_LEASE_MS, type TrialContext } from './trials.ts'

/** After a case whose model limits requests, or whose budget other runs use up. */
const PARKED_MS = 30_000

/** Tries the cases of evaluations, now and every `intervalMs`. */
export function startEvaluations(ctx: TrialContext, intervalMs: number): Pick<RepeatedTask, 'stop'> {
  return startPlanning({ name: 'try cases', intervalMs, logger: ctx.logger }, async (signal) => {
    const claimed = await claimCase(ctx.db, TRIAL_LEASE_MS)
    if (claimed) await tryCase(ctx, claimed, signal)
    return claimed !== undefined
  })
}

async function tryCase(ctx: TrialContext, claimed: ClaimedCase, stopping: AbortSignal): Promise<void> {
  const { organizationId, workflow, attempts } = claimed.run
  const startedMs = performance.now()
  const files = new Map(claimed.files?.map((file) => [file.id, file]))
  const planned = await planRun(ctx, {
    run: claimed.run,
    rules: claimed.rules,
    isOfOneModel: true,
    files: {
      listFiles: async () => [...files.values()],
      readFile: async (fileId) => {
        const { sha256 = '' } = files.get(fileId) ?? {}
        return (await readContents(ctx.db, workflow.id, [sha256])).get(sha256)
      },
    },
    check() {
      if (!claimed.files) throw new RunError('version_deleted', 'The version of the workflow was deleted meanwhile')
      if (attempts > MAX_CASE_ATTEMPTS) throw new RunError('too_many_attempts', 'No attempt came to its end')
    },
    stopping,
  })
  if (planned === undefined) return await releaseCase(ctx.db, claimed.run, { delayMs: 0, isCounted: false })
  if (planned.thrown instanceof RunParkedError && attempts < MAX_CASE_ATTEMPTS) {
    return await releaseCase(ctx.db, claimed.run, { delayMs: PARKED_MS, isCounted: true })
  }
  const result = toResult(claimed, planned, Math.round(performance.now() - startedMs))
  await recordResult(ctx, stopping, () => finishCase(ctx.db, result))
  ctx.changeNotices.add(organizationId, 'runs')
}

function toResult(
  { run: { id, attempts }, expected }: ClaimedCase,
  { steps, error }: NonNullable<Awaited<ReturnType<typeof planRun>>>,
  durationMs: number,
): CaseResult {
  const costs = listData(steps, 'model_answer').flatMap(({ cost_micros: cost }) => cost ?? [])
  const costMicros = costs.length > 0 ? costs.reduce((sum, cost) => sum + cost, 0) : null
  const payloads = listAcceptedPayloads(steps)
  if (Buffer.byteLength(JSON.stringify(payloads)) > CASE_MAX_BYTES) {
    const text = `payloads_too_large: The payloads have more than ${CASE_MAX_BYTES / 1_024} KiB, so they are not compared`
    return { id, attempts, error: error ?? text, payloads: null, differences: [], costMicros, durationMs }
  }
  const differences = error === null ? comparePayloads(expected, payloads) : []
  return { id, attempts, error, payloads, differences, costMicros, durationMs }
}
