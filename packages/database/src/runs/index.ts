/** From a start to the end of its run: starts, sessions, leases, runs, journals and approvals. */
export * from './app-starts.ts'
export * from './approvals.ts'
export * from './auto-runs.ts'
export * from './cancel-runs.ts'
export * from './cases.ts'
export { type ClaimedRun, MAX_RUN_ATTEMPTS } from './claimed-run.ts'
export * from './draft-run-rules.ts'
export { appendSteps, readSteps, serializeStep, type StepsToAppend } from './journal.ts'
export * from './evaluations.ts'
export * from './leases.ts'
export * from './model-limits.ts'
export * from './park-for-source.ts'
export * from './model-spending.ts'
export * from './public-runs.ts'
export * from './operator-reads.ts'
export {
  findVisibleRun,
  findVisibleRuns,
  listRunsOfSession,
  listVisibleRuns,
  needsSearch,
  RUN_TEXT,
  searchVisibleRuns,
} from './run-lists.ts'
export * from './run-prompts.ts'
export * from './runner-lock.ts'
export * from './runs.ts'
export * from './sessions.ts'
export * from './starts.ts'
export * from './trials.ts'
