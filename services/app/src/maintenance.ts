import { setTimeout as sleep } from 'node:timers/promises'
import {
  deleteEndedSignIns,
  deleteOrganizationRows,
  hasAccounts,
  purgeDeletedWorkflows,
  rollUpUsage,
} from '@workflow-service/database'
import { repeat, type RepeatedTask } from '@workflow-service/service-kit'
import type { AppServiceContext } from './app-service-context.ts'

const DELETE_SIGN_INS_EVERY_MS = 600_000
const DELETE_ORGANIZATIONS_EVERY_MS = 30_000
const PURGE_WORKFLOWS_EVERY_MS = 10_000
const ROLL_UP_USAGE_EVERY_MS = 60_000
const BATCH_SIZE = 1_000
/** Fewer: each run has its journal. */
const RUNS_PER_BATCH = 500
/** Pause between two batches, which leaves the database to the other services. */
const BATCH_PAUSE_MS = 50
const SETUP_RETRY_MS = 5_000

/** Starts the application's background tasks. Several processes may run them at the same time. */
export function startMaintenance(ctx: AppServiceContext): { stop(): Promise<void> } {
  const { db, logger } = ctx
  const start = (name: string, intervalMs: number, run: (signal: AbortSignal) => Promise<void>) =>
    repeat({ name, intervalMs, logger, run })
  const startBatches = (name: string, intervalMs: number, runBatch: () => Promise<boolean>) =>
    start(name, intervalMs, async (signal) => {
      while (!signal.aborted && (await runBatch())) await sleep(BATCH_PAUSE_MS)
    })
  const tasks: RepeatedTask[] = [
    startBatches(
      'delete ended sign-ins',
      DELETE_SIGN_INS_EVERY_MS,
      async () => (await deleteEndedSignIns(db, BATCH_SIZE)) === BATCH_SIZE,
    ),
    startBatches('delete the rows of deleted organizations', DELETE_ORGANIZATIONS_EVERY_MS, () =>
      deleteOrganizationRows(db),
    ),
    startBatches(
      'delete the runs of deleted workflows',
      PURGE_WORKFLOWS_EVERY_MS,
      async () => (await purgeDeletedWorkflows(db, RUNS_PER_BATCH)) > 0,
    ),
    start('roll up the usage', ROLL_UP_USAGE_EVERY_MS, async (signal) => {
      const hours = await rollUpUsage(db, signal)
      if (hours.length > 0) logger.info({ hours: hours.length, last_hour: hours.at(-1) }, 'usage.rolled_up')
    }),
    announceSetup(ctx),
  ]
  return {
    stop: async () => {
      await Promise.all(tasks.map((task) => task.stop()))
    },
  }
}

/**
 * Logs how the first owner is made, while no account exists. The link itself is for the operator's eyes: `wf setup-link` prints it,
 * and a log may be read by many.
 */
function announceSetup({ db, logger }: AppServiceContext): RepeatedTask {
  let isDone = false
  return repeat({
    name: 'announce the setup',
    intervalMs: 86_400_000,
    retryMs: SETUP_RETRY_MS,
    logger,
    run: async () => {
      if (isDone) return
      if (!(await hasAccounts(db))) logger.warn({ hint: 'make the first owner with wf setup-link' }, 'setup.pending')
      isDone = true
    },
  })
}
