/** From a start to the end of its run: starts, sessions, leases, runs, journals and approvals. */
export * from './app-starts.ts'
export {
  type ApprovalDecisionRequest,
  type ApprovalRequest,
  type ApprovalState,
  decideApprovals,
  type DecisionOutcome,
  endFirstApproval,
  hasApproval,
  parkForApproval,
  type PayloadToApprove,
  readApproval,
} from './approvals.ts'
export * from './auto-runs.ts'
export { type ClaimedRun, MAX_RUN_ATTEMPTS } from './claimed-run.ts'
export * from './draft-run-rules.ts'
export { appendSteps, readSteps, serializeStep, type StepsToAppend } from './journal.ts'
export * from './lease.ts'
export * from './leases.ts'
export * from './model-limits.ts'
export * from './reports.ts'
export { findVisibleRun, findVisibleRuns, listRunsOfSession, listVisibleRuns, type RunQuery } from './run-lists.ts'
export * from './run-prompts.ts'
export * from './runs.ts'
export * from './session-lists.ts'
export * from './sessions.ts'
export { type NewStart, recordStart, recordStarts, type StartOutcome, type StartRefusal } from './starts.ts'
