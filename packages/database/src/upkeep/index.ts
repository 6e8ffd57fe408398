/**
 * What runs on a timer or by an operator: retention, usage, gauges, notices and events of runs, the search index, the
 * deletion of a person's data, and the end of work after a restore. And what people read across areas: the overview,
 * and what needs attention.
 */
export { endWorkAfterRestore, listConnectedServices } from './after-restore.ts'
export { markAttentionDone, readAttention } from './attention.ts'
export * from './erase.ts'
export * from './gauge-reporters.ts'
export * from './notice-queue.ts'
export * from './notice-recipients.ts'
export { listNoticeOrganizations, recordNotices } from './notices.ts'
export * from './organization-pages.ts'
export * from './overview.ts'
export * from './retention.ts'
export * from './run-events.ts'
export * from './search-index.ts'
export { readUsage } from './usage-read.ts'
export { countTrial, rollUpUsage } from './usage-roll-up.ts'
