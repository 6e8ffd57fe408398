/**
 * The queue that leads sessions to runners: RabbitMQ, or a queue inside of one process with the same interface. A
 * message says "this session has work". The work itself is in PostgreSQL, and a runner finds it there without a message
 * too, so a message may be lost, repeated or late without harm.
 */
export { connectRabbitMq } from './connect-rabbitmq.ts'
export { createInProcessQueue } from './in-process-queue.ts'
export { openSessionQueue, type ServiceOverrides } from './open-session-queue.ts'
export { createSessionNotifier } from './session-notifier.ts'
export type * from './session-queue.ts'
