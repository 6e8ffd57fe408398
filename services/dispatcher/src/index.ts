/**
 * The dispatcher stores webhook sources, verifies them, and sends payloads to them. It is the only service that sends
 * requests to customers' endpoints and reads their signing secrets. It never decides what to send.
 */
export type { DispatcherOverrides } from './dispatcher-context.ts'
export { type DispatcherConfig, DispatcherSettings, readDispatcherConfig } from './config.ts'
export { toDeliveryResult } from './deliveries/describe-outcome.ts'
export { readAnswerText } from './outbound/answer-text.ts'
export { type RunningDispatcher, startDispatcher } from './start-dispatcher.ts'
