import {
  SESSION_MESSAGE_TYPE,
  SESSIONS_DEAD_LETTER_QUEUE,
  SESSIONS_MESSAGE_TYPE,
  SESSIONS_QUEUE,
} from '@workflow-service/contract'
import { readDeadLetters } from './dead-letters.ts'
import type { RabbitMqOptions } from './open-connection.ts'
import { openConsumer, REQUEST_ID_HEADER } from './open-consumer.ts'
import { openPublisher } from './open-publisher.ts'
import type { Consumer, SessionQueue } from './session-queue.ts'

/**
 * Opens the session queue on RabbitMQ. Returns at once and connects in the background: an unavailable broker fails
 * neither the start of the process nor a caller. Publisher and consumer have one connection each, because the broker's
 * alarm blocks a connection that publishes.
 *
 * - Connection lost: reconnects after 0.2 s, then after twice the delay, up to 5 s, without end. Messages without a
 *   confirm resolve to `failed`; messages without an acknowledgement are delivered again.
 * - Channel closed, or consumer cancelled by the broker (its queue was deleted or moved, or an acknowledgement took
 *   longer than the broker's `consumer_timeout`): the connection is dropped and opened again, which declares the queues
 *   again.
 * - Memory or disk alarm: publishing fails at once until the alarm ends; consuming goes on.
 * - No confirm for 30 s, or 10,000 messages without a confirm: publishing fails; after 30 s it also reconnects.
 */
export function connectRabbitMq(options: RabbitMqOptions): SessionQueue {
  const publisher = openPublisher(options)
  const consumers = new Set<Consumer>()
  return {
    publish: (message, properties) =>
      publisher.publish(SESSIONS_QUEUE, Buffer.from(JSON.stringify(message)), {
        type: 'session_ids' in message ? SESSIONS_MESSAGE_TYPE : SESSION_MESSAGE_TYPE,
        contentType: 'application/json',
        headers: { [REQUEST_ID_HEADER]: properties?.requestId },
      }),
    async consume(handler, { prefetch }) {
      const consumer = openConsumer(options, handler, prefetch)
      consumers.add(consumer)
      return consumer
    },
    depth: () =>
      publisher.request(async (channel) => ({
        ready: (await channel.checkQueue(SESSIONS_QUEUE)).messageCount,
        dead: (await channel.checkQueue(SESSIONS_DEAD_LETTER_QUEUE)).messageCount,
      })),
    deadLetters: (limit) => publisher.request((channel) => readDeadLetters(channel, limit)),
    ping: () => publisher.request(async () => {}),
    async close() {
      await Promise.all([...consumers].map((consumer) => consumer.close()))
      await publisher.close()
    },
  }
}
