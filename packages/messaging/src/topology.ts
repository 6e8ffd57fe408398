import { SESSIONS_DEAD_LETTER_QUEUE, SESSIONS_QUEUE } from '@workflow-service/contract'
import type { Channel, ChannelModel, Options } from 'amqplib'

/** `AMQP_QUEUE_TYPE`: a quorum queue survives the loss of a node of a cluster; on one node `classic` costs less. */
export type QueueType = 'quorum' | 'classic'

/** The broker's code for a queue that exists with other arguments. */
const PRECONDITION_FAILED = 406

/**
 * Declares both queues. A queue that exists with other arguments is used as it is, since nothing depends on them; then
 * `onMismatch` hears why.
 */
export async function declareQueues(
  model: ChannelModel,
  queueType: QueueType,
  onMismatch: (queue: string, error: Error) => void,
): Promise<void> {
  for (const [queue, options] of Object.entries(queues(queueType))) {
    const channel = await openChannel(model)
    try {
      await channel.assertQueue(queue, options)
      await channel.close()
    } catch (error) {
      if ((error as { code?: unknown }).code !== PRECONDITION_FAILED) throw error
      onMismatch(queue, error as Error)
    }
  }
}

/** A channel whose errors are told by its `close` event alone: without a listener they would end the process. */
export async function openChannel(model: ChannelModel): Promise<Channel> {
  const channel = await model.createChannel()
  channel.on('error', () => {})
  return channel
}

function queues(queueType: QueueType): Record<string, Options.AssertQueue> {
  return {
    [SESSIONS_QUEUE]: {
      durable: true,
      deadLetterExchange: '',
      deadLetterRoutingKey: SESSIONS_DEAD_LETTER_QUEUE,
      arguments: {
        'x-queue-type': queueType,
        // What RabbitMQ 4 does by itself, and 3 does not: a message that keeps killing its consumer ends.
        ...(queueType === 'quorum' ? { 'x-delivery-limit': 20 } : {}),
      },
    },
    // Classic, since only there messages can be looked at any number of times: a quorum queue counts each look.
    [SESSIONS_DEAD_LETTER_QUEUE]: { durable: true, maxLength: 10_000, arguments: { 'x-queue-type': 'classic' } },
  }
}
