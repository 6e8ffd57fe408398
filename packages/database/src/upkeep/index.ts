/** What runs on a timer or by an operator: retention, usage, gauges, and the end of work after a restore. */
export { endWorkAfterRestore, listConnectedServices } from './after-restore.ts'
export { markAttentionDone, MAX_ATTENTION_READ, readAttention } from './attention.ts'
export * from './gauge-reporters.ts'
export * from './notices.ts'
export * from './overview.ts'
export * from './retention.ts'
export { readUsage, type UsageQuery } from './usage-read.ts'
export { rollUpUsage } from './usage-roll-up.ts'
