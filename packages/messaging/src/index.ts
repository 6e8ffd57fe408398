/**
 * RabbitMQ topology, confirmed publishing and consuming, and the in-process stand-in with the same interface. It carries
 * wake-ups only: what a message says can always be found in the database too.
 */
export type { ConnectionState, QueueLogger } from './connection.ts'
export { createInProcessQueue } from './in-process-queue.ts'
export { connectRabbitMq, type RabbitMqOptions } from './rabbitmq.ts'
export type * from './session-queue.ts'
export type { QueueType } from './topology.ts'
