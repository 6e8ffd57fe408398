/**
 * The dispatcher: webhook sources, their verification, and the payloads sent to them. It is the only service that talks
 * to customers' endpoints and the only one that knows their signing secrets. It never decides what to send.
 */
export { DispatcherSettings, readDispatcherConfig, type DispatcherConfig } from './config.ts'
export { startDispatcher, type DispatcherOverrides, type RunningDispatcher } from './start-dispatcher.ts'
