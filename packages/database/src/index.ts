/**
 * The only room that knows Prisma and SQL. It offers questions and commands named in the domain's words; each takes the
 * database first and the organization second, so there is no unscoped read to misuse. Hot paths are single named
 * statements through the pool, the rest is plain Prisma on the same pool.
 */
export { createApiKey, hashApiKey, parseApiKey, type ParsedApiKey } from './api-key-format.ts'
export {
  type ApiKey,
  ApiKeyExistsError,
  findPrincipals,
  issueApiKey,
  type Principal,
  listApiKeys,
  revokeApiKey,
  touchApiKeys,
} from './api-keys.ts'
export { type AutoRunOptions, type AutoRunStart, startDueAutoRuns } from './auto-run.ts'
export { nextAutoRunAt, scheduleAutoRun, type StoredSchedule } from './auto-run-schedule.ts'
export { checkServer } from './check-server.ts'
export { createDatabase, type Database, type DatabaseOptions } from './client.ts'
export { isDatabaseUnavailable, isStatementError } from './database-unavailable.ts'
export {
  claimDeliveries,
  deleteOldDeliveries,
  deliveryQuerySql,
  findDeliveryState,
  markAbandonedDeliveries,
  listDeliveries,
  type DeliveryClaimRequest,
  type DeliveryOutcomeRecord,
  recordOutcomes,
  recordVerification,
  UNKNOWN_REASON,
  type Delivery,
  type DeliveryClaim,
  type DeliveryLease,
  type DeliveryQuery,
  type DeliveryResult,
  type DeliveryState,
  type DeliveryTarget,
  type NewDelivery,
} from './deliveries.ts'
export { listWorkflowFiles, readWorkflowFile, type WorkflowFile } from './files.ts'
export { foldCase } from './fold-case.ts'
export { deriveId, newId } from './ids.ts'
export type { ManifestOutcome } from './manifest/application.ts'
export { type AppliedManifest, applyManifests } from './manifest/apply-manifests.ts'
export { ManifestError, manifestErrors, toManifest } from './manifest/manifest-errors.ts'
export { migrate } from './migrate.ts'
export { findOrganizations, findWorkflowNames, listOrganizations, type OrganizationName } from './organizations.ts'
export {
  createSecretBox,
  rotateSecrets,
  SecretError,
  type SecretBox,
  type SecretOwner,
  type SecretRotation,
} from './secrets.ts'
export {
  appendSteps,
  claimNextRun,
  type ClaimedRun,
  countAttempt,
  type EarlierRun,
  type FinishedRun,
  type FinishOutcome,
  finishRuns,
  listEarlierRuns,
  listRuns,
  MAX_ATTEMPTS,
  type NextRun,
  readSteps,
  type RunDelivery,
  type RunFilter,
  runQuerySql,
  type RunRow,
  type RunStatus,
  type RunDetails,
  showRun,
  type StepsToAppend,
} from './runs.ts'
export {
  type Backlog,
  closeSession,
  FIRST_ORGANIZATION,
  type Lease,
  measureBacklog,
  openSession,
  releaseSessions,
  renewLeases,
  type SessionRow,
  showSession,
  acquireSessions,
  acquireWaitingSessions,
  type AcquiredSession,
  type AcquiredSessions,
  type AcquireOptions,
} from './sessions.ts'
export { workflowSearchText } from './search-text.ts'
export {
  confirmWebhookSource,
  deleteWebhookSource,
  findSaveTarget,
  findWebhookSource,
  hasWebhookSourceLog,
  listSourcesForAgents,
  listWebhookSources,
  type SourceForAgent,
  normalizedName,
  saveWebhookSource,
  type SaveOutcome,
  type SaveTarget,
  type StoredWebhookSource,
  type WebhookSource,
  type WebhookSourceChange,
} from './webhook-sources.ts'
export {
  deleteOldIdempotencyKeys,
  type NewStart,
  recordStart,
  recordStarts,
  type StartOutcome,
  type StartRefusal,
} from './starts.ts'
export {
  findWorkflows,
  findWorkflowVersions,
  listWorkflows,
  type WorkflowDocument,
  type WorkflowLookUp,
  type WorkflowPageRows,
  type WorkflowPosition,
  type WorkflowQuery,
  type WorkflowVersion,
} from './workflows.ts'
