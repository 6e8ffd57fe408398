import { SESSIONS_DEAD_LETTER_QUEUE, SESSIONS_QUEUE } from '@workflow-service/contract'
import type { ChannelModel, Options } from 'amqplib'
import { openChannel } from './channels.ts'

/** `quorum` survives the loss of a node of a cluster. On a single node, `classic` costs less. */
export type QueueType = 'quorum' | 'classic'

/** AMQP's reply code for a queue that exists with other arguments, or is one more than the virtual host may have. */
const PRECONDITION_FAILED = 406
/** AMQP's reply code for a queue that does not exist, and for a classic queue on a node of the cluster that is down. */
const NOT_FOUND = 404

/**
 * Declares the session queue and the dead-letter queue. A queue that exists with other arguments is used as it is,
 * since no promise depends on them, and the dead-letter queue may be on a node that is down; `onMismatch` is called
 * with the broker's error.
 */
export async function declareQueues(
  model: ChannelModel,
  queueType: QueueType,
  onMismatch: (queue: string, error: Error) => void,
): Promise<void> {
  for (const [queue, options] of Object.entries(queueOptions(queueType))) {
    const channel = await openChannel(model)
    try {
      await channel.assertQueue(queue, options)
      await channel.close()
    } catch (error) {
      const { code } = error as { code?: unknown }
      const isUsable =
        queue === SESSIONS_DEAD_LETTER_QUEUE
          ? code === PRECONDITION_FAILED || code === NOT_FOUND
          : code === PRECONDITION_FAILED && (await exists(model, queue))
      if (!isUsable) throw error
      onMismatch(queue, error as Error)
    }
  }
}

async function exists(model: ChannelModel, queue: string): Promise<boolean> {
  const channel = await openChannel(model)
  return await channel.checkQueue(queue).then(
    () => channel.close().then(() => true),
    () => false,
  )
}

/** Whether a request failed because a queue does not exist. */
export function isQueueMissing(error: unknown): boolean {
  return (error as { code?: unknown }).code === NOT_FOUND
}

function queueOptions(queueType: QueueType): Record<string, Options.AssertQueue> {
  return {
    [SESSIONS_QUEUE]: {
      durable: true,
      deadLetterExchange: '',
      deadLetterRoutingKey: SESSIONS_DEAD_LETTER_QUEUE,
      arguments: {
        'x-queue-type': queueType,
        // RabbitMQ 4's default, absent in 3: stops the redelivery of a message that crashes its consumer each time.
        ...(queueType === 'quorum' ? { 'x-delivery-limit': 20 } : {}),
      },
    },
    // Classic, because a quorum queue counts each read without acknowledgement as a delivery and drops the message at
    // last.
    [SESSIONS_DEAD_LETTER_QUEUE]: { durable: true, maxLength: 10_000, arguments: { 'x-queue-type': 'classic' } },
  }
}
