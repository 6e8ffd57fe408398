/**
 * What every service does alike: settings, logging, metrics, the process's life cycle, the HTTP server with its
 * operations, errors and health routes, and helpers for time and batches. It uses neither a queue nor the
 * database.
 */
export { backoff, type BackoffOptions } from './backoff.ts'
export { batchCalls, type BatchOptions } from './batch-calls.ts'
export { createOperationCall, type OperationCall, type OperationResult } from './http/call-operation.ts'
export * from './http/errors.ts'
export type { CheckedParts, HttpOperation, OperationRules, PartOf, Rule } from './http/check-request.ts'
export * from './http/health.ts'
export { type BodyLimits, isJsonInUtf8 } from './http/json-body.ts'
export { logRequests, type RequestLogOptions } from './http/log-requests.ts'
export * from './http/operations.ts'
export { createExpressApp, createPublicApp } from './http/express-app.ts'
export { createFairQueue } from './http/request-slots.ts'
export { onceClosed } from './http/response-state.ts'
export * from './http/request-id.ts'
export * from './http/server.ts'
export { serveOpenApi } from './http/serve-openapi.ts'
export * from './http/static-answer.ts'
export { traceRequests } from './http/trace-requests.ts'
export * from './http/write-json.ts'
export {
  createInFlightLimiter,
  type InFlightLimiter,
  type InFlightLimits,
  type LimitReached,
  type ReleaseSlot,
} from './in-flight-limiter.ts'
export { LOG_EVENTS, type LogEvent } from './log-events.ts'
export * from './logger.ts'
export * from './metrics.ts'
export { repeat, type RepeatedTask, type RepeatOptions } from './repeat.ts'
export { type MaintenanceTask, startMaintenance } from './maintenance.ts'
export { createPace } from './pace.ts'
export * from './run-service.ts'
export { createServiceParts } from './service-parts.ts'
export * from './settings.ts'
export * from './start-service.ts'
export * from './shared-settings.ts'
export { splitList } from './split-list.ts'
export { registerSystemMetrics, type SystemReads } from './system-metrics.ts'
export * from './tracing.ts'
export type { TrustProxy } from './trust-proxy.ts'
export { withTimeout } from './with-timeout.ts'
