import {
  deleteEndedSignIns,
  deleteOldTrials,
  deleteOldNotices,
  deleteOldSearchChunks,
  deleteOrganizationRows,
  foldEmails,
  hasAccounts,
  indexForSearch,
  purgeDeletedWorkflows,
  rollUpUsage,
} from '@workflow-service/database'
import { createPace, type MaintenanceTask, runBatches } from '@workflow-service/service-kit'
import type { AppServiceContext } from './app-service-context.ts'
import { makeNotices, makeRunEvents, sendNotices } from './notices.ts'
import { sendResendJobs } from './resend-jobs.ts'

const BATCH_SIZE = 1_000
/** Fewer: each run has its journal. */
const RUNS_PER_BATCH = 500
/** Between two batches, of rows that are few at a time: leaves the database to the other services. */
const PAUSE_MS = 50
/** Of the time, at most, that each task works which has more to do the more runs there are. */
const SHARE = 0.05

/** Deletes what is old, in batches. */
function deleting(
  name: string,
  intervalMs: number,
  statement: (db: AppServiceContext['db'], batchSize: number) => Promise<number>,
): MaintenanceTask<AppServiceContext> {
  return {
    name,
    intervalMs,
    statements: [statement.name],
    run: ({ db }, signal) =>
      runBatches({ signal, pauseMs: PAUSE_MS }, async () => (await statement(db, BATCH_SIZE)) === BATCH_SIZE),
  }
}

/** What the application does on a timer. */
export const MAINTENANCE: readonly MaintenanceTask<AppServiceContext>[] = [
  deleting('delete ended sign-ins', 600_000, deleteEndedSignIns),
  deleting('delete old trials', 600_000, deleteOldTrials),
  {
    name: 'delete the rows of deleted organizations',
    intervalMs: 30_000,
    statements: ['deleteOrganizationRows'],
    run: ({ db }, signal) => runBatches({ signal, pauseMs: PAUSE_MS }, () => deleteOrganizationRows(db)),
  },
  {
    name: 'delete the runs of deleted workflows',
    intervalMs: 10_000,
    statements: ['purgeDeletedWorkflows'],
    run: ({ db }, signal) =>
      runBatches({ signal, pauseMs: PAUSE_MS }, async () => (await purgeDeletedWorkflows(db, RUNS_PER_BATCH)) > 0),
  },
  {
    name: 'roll up the usage',
    intervalMs: 60_000,
    statements: ['rollUpUsage'],
    run: async ({ db, logger }, signal) => {
      const hours = await rollUpUsage(db, { signal, pace: createPace({ share: SHARE, signal }) })
      if (hours.length > 0) logger.info({ hours: hours.length, last_hour: hours.at(-1) }, 'usage.rolled_up')
    },
  },
  {
    name: 'index for the search',
    intervalMs: 10_000,
    statements: ['indexForSearch'],
    run: async ({ db }, signal) =>
      void (await indexForSearch(db, { signal, pace: createPace({ share: SHARE, signal }) })),
  },
  deleting('delete the search index of deleted rows', 3_600_000, deleteOldSearchChunks),
  {
    name: 'make notices',
    intervalMs: 60_000,
    statements: ['listNoticeOrganizations', 'recordNotices'],
    run: makeNotices,
  },
  {
    name: 'make events of runs',
    intervalMs: 3_000,
    statements: ['listEventOrganizations', 'recordRunEvents'],
    run: makeRunEvents,
  },
  {
    name: 'send notices',
    intervalMs: 3_000,
    statements: ['takeDueNotices', 'finishNotice'],
    run: sendNotices,
  },
  deleting('delete old notices', 3_600_000, deleteOldNotices),
  {
    name: 'send payloads again',
    intervalMs: 1_000,
    statements: ['leaseResendJob', 'findAskingForApproval', 'recordResends', 'deferResends', 'releaseResendJob'],
    run: sendResendJobs,
  },
  {
    name: 'fold the email addresses of users',
    // Services of 1.0.0 write some during an upgrade.
    intervalMs: 600_000,
    statements: ['foldEmails'],
    run: async ({ db }) => void (await foldEmails(db)),
  },
  {
    name: 'announce the setup',
    intervalMs: 86_400_000,
    retryMs: 5_000,
    statements: ['hasAccounts'],
    // The link itself is for the operator's eyes: `wf setup-link` prints it, and a log may be read by many.
    run: async ({ db, logger }) => {
      if (!(await hasAccounts(db))) logger.warn({ hint: 'make the first owner with wf setup-link' }, 'setup.pending')
    },
  },
]
