import { setTimeout as sleep } from 'node:timers/promises'
import { SESSIONS_QUEUE } from '@workflow-service/contract'
import { withTimeout } from '@workflow-service/service-kit'
import type { Channel, ConsumeMessage } from 'amqplib'
import { collectCalls } from './collect-calls.ts'
import { publishDeadLetter, REQUEST_ID_HEADER, textOf } from './dead-letters.ts'
import { closeChannel, openChannel } from './declare-queues.ts'
import { decodeSessionMessage, type MessageError } from './decode-session-message.ts'
import { openConnection, type RabbitMqOptions } from './open-connection.ts'
import type { Publisher } from './open-publisher.ts'
import type { Consumer, MessageHandler } from './session-queue.ts'

/** The publishing connection may come up a little later than the consuming one. */
const DEAD_LETTER = { attempts: 10, intervalMs: 300 } as const
const CANCEL_TIMEOUT_MS = 2_000
/**
 * Acknowledgements wait this long for each other, or until half of `prefetch` do: a quorum queue writes them to disk,
 * just when the run that the message began commits its payload.
 */
const ACKNOWLEDGE_AFTER_MS = 20

/** Opens a connection that consumes the session queue. Messages that cannot be read leave through the publisher. */
export function openConsumer(
  options: RabbitMqOptions,
  publisher: Publisher,
  handler: MessageHandler,
  prefetch: number,
): Consumer {
  const { logger, onDeadLetter } = options
  const running = new Set<Promise<void>>()
  const settlements = collectCalls(prefetch / 2, ACKNOWLEDGE_AFTER_MS)
  let current: { channel: Channel; consumerTag: string } | undefined
  let isClosing = false
  let closing: Promise<void> | undefined

  const handle = async (message: ConsumeMessage): Promise<'ack' | 'reject'> => {
    const decoded = decodeSessionMessage(message.content.toString('utf8'), message.properties.type)
    if ('error' in decoded) return await moveToDeadLetters(message, decoded.error)
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

  const moveToDeadLetters = async (message: ConsumeMessage, error: MessageError): Promise<'ack' | 'reject'> => {
    onDeadLetter?.(error.reason)
    logger?.warn({ ...error, message_id: message.properties.messageId }, 'message.dead_lettered')
    for (let attempt = 0; attempt < DEAD_LETTER.attempts; attempt += 1) {
      if (attempt > 0) await sleep(DEAD_LETTER.intervalMs)
      if ((await publishDeadLetter(publisher, message, error)) === 'confirmed') return 'ack'
    }
    // The broker moves a rejected message to the dead-letter queue itself, without our reason.
    return 'reject'
  }

  const connection = openConnection('consumer', options, async (model, reconnect) => {
    const channel = await openChannel(model)
    channel.on('close', () => {
      if (current?.channel === channel) current = undefined
      if (!isClosing) reconnect('The consuming channel closed')
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
