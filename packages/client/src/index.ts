/** Client of the public API of the Workflow Automation Service. */
export * from './client.ts'
export { AbortError, ApiError, ConnectionError, TimeoutError, WorkflowServiceError } from './errors.ts'
export type { ApiErrorAnswer, CallFacts } from './errors.ts'
export { Page, type PagePromise } from './page.ts'
export type { RateLimit } from './rate-limit.ts'
export type { Fetch, Hooks, ReceivedAnswer, SentRequest } from './send-request.ts'
export type * from './types.ts'
