/**
 * All SQL of the service. Functions take the database first and the organization second. Named statements serve the hot
 * paths; Prisma serves single rows where speed does not matter.
 */
export { createHintSender, type Hint, type HintListener, type HintSender, listenToHints } from './hints.ts'
export { endWorkAfterRestore, listConnectedServices } from './after-restore.ts'
export { createApiKey, hashApiKey, parseApiKey } from './api-key-format.ts'
export {
  type ApiKey,
  ApiKeyExistsError,
  findPrincipals,
  findApiKey,
  issueApiKey,
  listApiKeyPage,
  listApiKeys,
  type NewApiKey,
  storeApiKey,
  type Principal,
  revokeApiKey,
  touchApiKeys,
} from './api-keys.ts'
export {
  deleteOldAuditEvents,
  deleteOldJournals,
  deleteOldRuns,
  deleteOldSessions,
  listOrganizationIds,
  type RetentionBatch,
  type RetentionResult,
} from './retention.ts'
export {
  type Account,
  changePassword,
  findAccountByEmail,
  findAccountById,
  findAccountByOidc,
  findAccountByUser,
  hasAccounts,
  type Membership,
  recordFailedSignIn,
  saveAccount,
  signIn,
} from './accounts.ts'
export {
  AUDIT_ACTIONS,
  type AuditAction,
  type AuditedBy,
  type AuditPrincipal,
  listAuditEvents,
  recordAuditEvent,
  OPERATOR,
  operatorOf,
} from './audit-events.ts'
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
export { startDueAutoRuns } from './auto-runs.ts'
export { checkServer } from './check-server.ts'
export { createDatabase, type Database, type DatabaseOptions } from './client.ts'
export { isDatabaseUnavailable, isStatementError, isStatementTimeout } from './database-unavailable.ts'
export {
  claimDeliveries,
  claimResend,
  deleteOldDeliveries,
  type Delivery,
  type DeliveryClaim,
  type DeliveryClaimRequest,
  type DeliveryLease,
  type DeliveryOutcomeRecord,
  type DeliveryQuery,
  type DeliveryResult,
  type DeliveryTarget,
  findDeliveryState,
  listDeliveries,
  markAbandonedDeliveries,
  readRejectedAnswers,
  recordOutcomes,
  removeUnsentDelivery,
  type Resend,
  recordVerification,
  UNKNOWN_REASON,
} from './deliveries.ts'
export {
  listWorkflowFiles,
  readWorkflowFile,
  readWorkflowTexts,
  type WorkflowFile,
  type WorkflowTexts,
} from './files.ts'
export { draftRunRules } from './draft-run-rules.ts'
export { deriveId, isDeliveryIdOfRun, newDeliveryId, newId } from './ids.ts'
export { decodeListCursor, encodeListCursor, type ListScope } from './list-cursor.ts'
export { appendSteps, readSteps, serializeStep, type StepsToAppend } from './journal.ts'
export { isGaugeReporter, REPORTER_LEASE_MS, stopReportingGauges } from './gauge-reporters.ts'
export {
  type AcquiredSession,
  type AcquiredSessions,
  type AcquireOptions,
  acquireSessions,
  acquireWaitingSessions,
  FIRST_ORGANIZATION,
  type Lease,
  measureBacklog,
  type ReleasedLease,
  releaseSessions,
  type RenewableLease,
  renewLeases,
  TOO_MANY_ATTEMPTS,
} from './leases.ts'
export { migrate } from './migrate.ts'
export { type ModelSlot, recordModelLimit, reserveModelSlot } from './model-limits.ts'
export {
  acceptEmail,
  acceptInvitation,
  type CheckedAccount,
  type LinkPerson,
  acceptReset,
  completeSetup,
  createSetupLink,
  findInvitation,
  findOneTimeLink,
  type OneTimeLink,
  type UsedLink,
} from './one-time-links.ts'
export {
  createOrganization,
  deleteOrganization,
  deleteOrganizationRows,
  findOrganizations,
  findWorkflowNames,
  listOrganizations,
  type OrganizationName,
  readOrganization,
  renameOrganization,
  setOrganizationSuspended,
} from './organizations.ts'
export { exceedsQuota, type QuotaKind, type SavedThing } from './quotas.ts'
export {
  findIdsByPrefix,
  findWorkflowsByName,
  listRuns,
  listSessionRows,
  listWorkflowNames,
  type RunDelivery,
  type RunDetails,
  type RunFilter,
  type RunRow,
  showRun,
  showSession,
  type WorkflowName,
} from './reports.ts'
export {
  claimNextRun,
  type ClaimedRun,
  countAttempt,
  type EarlierRun,
  type FinishedRun,
  type FinishOutcome,
  finishRuns,
  listEarlierRuns,
  MAX_RUN_ATTEMPTS,
  type NextRun,
} from './runs.ts'
export { workflowSearchText } from './search-text.ts'
export { createSecretBox, rotateSecrets, type SecretBox, SecretError } from './secrets.ts'
export {
  confirmSignIn,
  createSignIn,
  findOpenSignIns,
  deleteEndedSignIns,
  endSignIn,
  findSignedInUser,
  hashToken,
  listSignIns,
  type NewSignIn,
  SIGN_IN_MAX_DAYS,
  type SignedInUser,
  switchOrganization,
} from './sign-ins.ts'
export { closeSession, createSession, openSession, type SessionRow } from './sessions.ts'
export {
  deleteOldIdempotencyKeys,
  type NewStart,
  recordStart,
  recordStarts,
  type StartOutcome,
  type StartRefusal,
} from './starts.ts'
export { foldCase } from './fold-case.ts'
export { inTransaction } from './in-transaction.ts'
export {
  type CheckUserChange,
  createUser,
  createUserLink,
  deleteUser,
  findUserByEmail,
  findUserById,
  LINK_HOURS,
  listDuplicateUsers,
  listUsers,
  type NewUserLink,
  saveUser,
  signUserOut,
} from './users.ts'
export {
  type FoundSource,
  searchSources,
  confirmWebhookSource,
  deleteWebhookSource,
  findSaveTarget,
  findWebhookSource,
  hasWebhookSourceLog,
  listSmallSources,
  listSourceNames,
  listSourcesWithLastRequests,
  listSourceStates,
  listWebhookSources,
  normalizedName,
  type SaveTarget,
  saveWebhookSource,
  saveWebhookSourceSettings,
  readSources,
  type SourceForAgent,
  type SourceName,
  type StoredWebhookSource,
  type WebhookSource,
} from './webhook-sources.ts'
export {
  findWorkflows,
  findWorkflowVersions,
  listWorkflows,
  type OrganizationUsers,
  type WorkflowDocument,
  type WorkflowLookUp,
  type WorkflowPosition,
  type WorkflowVersion,
} from './workflows.ts'
export {
  type DeliveryDetail,
  findVisibleDeliveries,
  findVisibleDelivery,
  listVisibleDeliveries,
} from './delivery-reads.ts'
export { readOverview } from './overview.ts'
export { findRunPrompts, type RecordedPrompt, recordRunPrompt } from './run-prompts.ts'
export { findVisibleRun, findVisibleRuns, listRunsOfSession, listVisibleRuns, type RunQuery } from './run-lists.ts'
export { searchEverything } from './search.ts'
export { findSession, findSessions, listSessions, type SessionQuery } from './session-lists.ts'
export { readUsage, rollUpUsage, type UsageQuery } from './usage.ts'
export { type ReadPage, type TimePosition, type Viewer, viewerOf } from './viewer.ts'
export {
  type AppStart,
  type AppStartOutcome,
  readReadiness,
  recordAppStart,
  type WorkflowReadiness,
} from './app-starts.ts'
export { readWorkflowDetail } from './workflow-detail.ts'
export {
  createWorkflow,
  deleteWorkflow,
  duplicateWorkflow,
  type EditingPerson,
  EditRefused,
  purgeDeletedWorkflows,
  saveAutoRun,
  saveWorkflow,
  saveWorkflowUsers,
  setWorkflowActive,
  type WorkflowEdit,
} from './workflow-edits.ts'
export { deleteFile, deleteTrigger, readAppFile, saveFile, saveTrigger } from './workflow-parts.ts'
export { findWorkflowRows, listWorkflowRows } from './workflow-rows.ts'
