import { SESSIONS_QUEUE } from '@workflow-service/contract'
import { withTimeout } from '@workflow-service/service-kit'
import type { Channel, ConsumeMessage } from 'amqplib'
import { closeChannel, onChannelClose, openChannel } from './channels.ts'
import { collectCalls } from './collect-calls.ts'
import { decodeSessionMessage, textOf } from './decode-session-message.ts'
import { openConnection, type RabbitMqOptions } from './open-connection.ts'
import type { Consumer, MessageHandler } from './session-queue.ts'

export const REQUEST_ID_HEADER = 'x-request-id'
const CANCEL_TIMEOUT_MS = 2_000
/**
 * Acknowledgements wait this long for each other, or until half of `prefetch` do: a quorum queue writes them to disk,
 * just when the run that the message began commits its payload.
 */
const ACKNOWLEDGE_AFTER_MS = 20

/** Opens a connection that consumes the session queue. The broker moves rejected messages to the dead-letter queue. */
export function openConsumer(options: RabbitMqOptions, handler: MessageHandler, prefetch: number): Consumer {
  const { logger, onDeadLetter } = options
  const running = new Set<Promise<void>>()
  const settlements = collectCalls(prefetch / 2, ACKNOWLEDGE_AFTER_MS)
  let current: { channel: Channel; consumerTag: string } | undefined
  let isClosing = false
  let closing: Promise<void> | undefined

  const handle = async (message: ConsumeMessage): Promise<'ack' | 'reject'> => {
    const decoded = decodeSessionMessage(message.content.toString('utf8'), message.properties.type)
    if ('error' in decoded) {
      onDeadLetter?.(decoded.error.reason)
      logger?.warn({ ...decoded.error, message_id: message.properties.messageId }, 'message.dead_lettered')
      return 'reject'
    }
    const properties = { requestId: textOf(message.properties.headers?.[REQUEST_ID_HEADER]) }
    const handleSession = async (sessionId: string): Promise<void> => {
      try {
        await handler({ session_id: sessionId }, properties)
      } catch (error) {
        logger?.warn({ session_id: sessionId, error: String(error) }, 'message.failed')
      }
    }
    await Promise.all(decoded.sessionIds.map(handleSession))
    return 'ack'
  }

  const connection = openConnection('consumer', options, async (model, reconnect) => {
    const channel = await openChannel(model)
    onChannelClose(channel, (reason) => {
      if (current?.channel === channel) current = undefined
      if (!isClosing) reconnect(reason)
    })
    await channel.prefetch(prefetch)
    const { consumerTag } = await channel.consume(SESSIONS_QUEUE, (message) => {
      // null: the broker cancelled the consumer.
      if (message === null) return reconnect('The broker cancelled the consumer')
      const done = handle(message)
        .then((verdict) => settlements.add(() => settle(channel, message, verdict)))
        .finally(() => running.delete(done))
      running.add(done)
    })
    current = { channel, consumerTag }
  })

  const close = async (): Promise<void> => {
    isClosing = true
    if (current) {
      const { channel, consumerTag } = current
      // Without an answer, the end of the connection ends the consumer too.
      await withTimeout(channel.cancel(consumerTag), CANCEL_TIMEOUT_MS).catch(() => {})
    }
    await Promise.all(running)
    settlements.makeAll()
    // Closing the channel first makes sure that the broker has processed the last acknowledgement.
    if (current) await closeChannel(current.channel)
    await connection.close()
  }
  return { close: () => (closing ??= close()) }
}

/** Acknowledges or rejects on the channel that delivered the message; if it has closed, the broker delivers again. */
function settle(channel: Channel, message: ConsumeMessage, verdict: 'ack' | 'reject'): void {
  try {
    if (verdict === 'ack') channel.ack(message)
    else channel.reject(message, false)
  } catch {
    // amqplib throws on a closed channel.
  }
}
