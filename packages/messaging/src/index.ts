/**
 * The queue that leads sessions to runners: RabbitMQ, or a queue inside of one process with the same interface. A
 * message says "this session has work". The work itself is in PostgreSQL, and a runner finds it there without a message
 * too, so a message may be lost, repeated or late without harm.
 *
 * @example
 * import { connectRabbitMq } from '@workflow-service/messaging'
 *
 * const queue = connectRabbitMq({
 *   url: 'amqp://guest:guest@localhost:5672',
 *   queueType: 'classic',
 *   connectionName: 'example',
 *   onState: (role, state) => console.log(role, state),
 * })
 *
 * // Receives messages, at most 10 at once, as soon as the broker is connected and again after each reconnect.
 * await queue.consume(async ({ session_id }) => console.log('work in', session_id), { prefetch: 10 })
 *
 * // Publishing never waits for the broker: it fails until the connection is up.
 * const message = { session_id: '0190f6a4-5f4e-7cc2-9d4a-5b8f3a3b2c1d' }
 * while ((await queue.publish(message)) === 'failed') await new Promise((resolve) => setTimeout(resolve, 100))
 *
 * // Waits for the handlers under way, then closes both connections.
 * await queue.close()
 */
export { connectRabbitMq } from './connect-rabbitmq.ts'
export { createInProcessQueue } from './in-process-queue.ts'
export { createSessionNotifier, type SessionNotifier } from './session-notifier.ts'
export type * from './session-queue.ts'
