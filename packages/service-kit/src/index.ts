/**
 * What every service does alike: settings, logging, the HTTP server's life cycle, health, metrics, error answers. It
 * knows nothing of workflows, queues or the database.
 */
export * from './api-error.ts'
export * from './error-answers.ts'
export * from './health.ts'
export * from './http-server.ts'
export { jsonBodyReader } from './json-body-reader.ts'
export * from './logger.ts'
export * from './metrics.ts'
export { backoff, type BackoffOptions } from './backoff.ts'
export { batchCalls, type BatchOptions } from './batch-calls.ts'
export { newRequestId } from './new-request-id.ts'
export { repeat, type RepeatedTask, type RepeatOptions } from './repeat.ts'
export * from './request-id.ts'
export * from './run-service.ts'
export * from './settings.ts'
export { withTimeout } from './with-timeout.ts'
export * from './write-json.ts'
