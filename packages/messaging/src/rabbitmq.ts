import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import {
  SESSION_MESSAGE_TYPE,
  SESSIONS_DEAD_LETTER_QUEUE,
  SESSIONS_QUEUE,
  type SessionMessage,
} from '@workflow-service/contract'
import type { Channel, ChannelModel, ConfirmChannel, ConsumeMessage, GetMessage, Options } from 'amqplib'
import { type ConnectionState, openConnection, type QueueLogger } from './connection.ts'
import { withDeadline } from './deadline.ts'
import { decodeSessionMessage, type MessageFault } from './decode-session-message.ts'
import type {
  Consumer,
  DeadLetter,
  DeadLetterReason,
  MessageProperties,
  PublishOutcome,
  SessionQueue,
} from './session-queue.ts'
import { declareQueues, openChannel, type QueueType } from './topology.ts'

export interface RabbitMqOptions {
  url: string
  queueType: QueueType
  /** Who connects: shown in the broker's list of connections. */
  connectionName: string
  logger?: QueueLogger
  /** Hears when the publishing or the consuming connection comes up, goes down or is blocked. */
  onState?: (role: 'publisher' | 'consumer', state: ConnectionState) => void
  /** Hears of each message that could not be read. */
  onDeadLetter?: (reason: DeadLetterReason) => void
}

/** The connection that publishes may come up a little later than the one that consumes. */
const DEAD_LETTER_ATTEMPTS = 10
const DEAD_LETTER_PAUSE_MS = 300

/** The header that tells why a message is in the dead-letter queue, and its companions. */
const REASON_HEADER = 'x-dead-letter-reason'
const DETAIL_HEADER = 'x-dead-letter-detail'
const DIED_AT_HEADER = 'x-dead-letter-at'
const REQUEST_ID_HEADER = 'x-request-id'

/** With more messages unconfirmed than this, publishing fails at once: a broker that does not confirm costs no memory. */
const MAX_UNCONFIRMED = 10_000
/** A confirm that takes longer will not come; the channel is made anew. */
const CONFIRM_TIMEOUT_MS = 30_000
const CONFIRM_CHECK_INTERVAL_MS = 5_000
/** How long a question to the broker may take. */
const ANSWER_TIMEOUT_MS = 2_000

/**
 * RabbitMQ as the session queue. Returns at once and connects in the background, for ever: a broker that is away fails
 * neither the boot nor a caller. Publishing and consuming have a connection each, since a broker with an alarm stops the
 * connections that publish.
 */
export function connectRabbitMq(options: RabbitMqOptions): SessionQueue {
  const publisher = openPublisher(options)
  const consumers = new Set<Consumer>()
  return {
    publish: (message, properties) =>
      publisher.publish(SESSIONS_QUEUE, Buffer.from(JSON.stringify(message)), {
        type: SESSION_MESSAGE_TYPE,
        contentType: 'application/json',
        headers: properties?.requestId === undefined ? {} : { [REQUEST_ID_HEADER]: properties.requestId },
      }),
    async consume(handler, { prefetch }) {
      const consumer = openConsumer(options, publisher, handler, prefetch)
      consumers.add(consumer)
      return consumer
    },
    depth: () =>
      publisher.ask(async (channel) => ({
        ready: (await channel.checkQueue(SESSIONS_QUEUE)).messageCount,
        dead: (await channel.checkQueue(SESSIONS_DEAD_LETTER_QUEUE)).messageCount,
      })),
    deadLetters: (limit) =>
      publisher.ask(async (channel) => {
        // Closing the channel without an acknowledgement puts them back where they were.
        const letters: DeadLetter[] = []
        while (letters.length < limit) {
          const message = await channel.get(SESSIONS_DEAD_LETTER_QUEUE)
          if (message === false) break
          letters.push(toDeadLetter(message))
        }
        return letters
      }),
    ping: () => publisher.ask(async () => {}),
    async close() {
      await Promise.all([...consumers].map((consumer) => consumer.close()))
      await publisher.close()
    },
  }
}

// ------------------------------------------------------------------------------------------------------- publishing

interface Publisher {
  publish(queue: string, content: Buffer, options: Options.Publish): Promise<PublishOutcome>
  /** Asks the broker something on a channel of its own; rejects while it is away or does not answer in time. */
  ask<Answer>(question: (channel: Channel) => Promise<Answer>): Promise<Answer>
  close(): Promise<void>
}

interface Unconfirmed {
  readonly publishedAt: number
  isReturned: boolean
}

function openPublisher(options: RabbitMqOptions): Publisher {
  const { url, queueType, connectionName } = options
  const idPrefix = randomUUID()
  const report = stateReporter('publisher', options)
  let sequence = 0
  let isBlocked = false
  let current: { model: ChannelModel; channel: ConfirmChannel } | undefined
  let unconfirmed = new Map<string, Unconfirmed>()

  const connection = openConnection({
    url,
    name: `${connectionName} publisher`,
    async setUp(model, lose) {
      await declareQueues(model, queueType, mismatchReporter(options))
      const channel = await model.createConfirmChannel()
      const mine = new Map<string, Unconfirmed>()
      const watch = setInterval(() => {
        const [oldest] = mine.values()
        if (!isBlocked && oldest && Date.now() - oldest.publishedAt > CONFIRM_TIMEOUT_MS) {
          lose(`The broker confirmed nothing for ${CONFIRM_TIMEOUT_MS} ms`)
        }
      }, CONFIRM_CHECK_INTERVAL_MS)
      channel.on('error', () => {})
      // An unroutable message is confirmed too: that it came back is what tells.
      channel.on('return', ({ properties }) => {
        const returned = mine.get(String(properties.messageId))
        if (returned) returned.isReturned = true
      })
      channel.on('close', () => {
        clearInterval(watch)
        if (current?.channel === channel) current = undefined
        lose('The publishing channel closed')
      })
      unconfirmed = mine
      isBlocked = false
      current = { model, channel }
    },
    onState(state, error) {
      isBlocked = state === 'blocked'
      report(state, error)
    },
  })

  return {
    publish(queue, content, publishOptions) {
      const pending = unconfirmed
      if (!current || isBlocked || pending.size >= MAX_UNCONFIRMED) return Promise.resolve('failed')
      const { promise, resolve } = Promise.withResolvers<PublishOutcome>()
      const messageId = publishOptions.messageId ?? `${idPrefix}-${++sequence}`
      const entry: Unconfirmed = { publishedAt: Date.now(), isReturned: false }
      pending.set(messageId, entry)
      const confirm = (error: unknown): void => {
        pending.delete(messageId)
        resolve(error || entry.isReturned ? 'failed' : 'confirmed')
      }
      try {
        // Mandatory: what no queue takes comes back.
        const always = { persistent: true, mandatory: true, timestamp: Math.trunc(entry.publishedAt / 1_000) }
        current.channel.publish('', queue, content, { ...publishOptions, ...always, messageId }, confirm)
      } catch (error) {
        // On a channel that has just closed amqplib throws at once.
        confirm(error)
      }
      return promise
    },
    async ask(question) {
      if (!current) throw new Error('RabbitMQ is not connected')
      const channel = await withDeadline(openChannel(current.model), ANSWER_TIMEOUT_MS, 'Opening a channel')
      try {
        return await withDeadline(question(channel), ANSWER_TIMEOUT_MS, 'The answer of RabbitMQ')
      } finally {
        await closeChannel(channel)
      }
    },
    async close() {
      await connection.close()
    },
  }
}

async function closeChannel(channel: Channel): Promise<void> {
  try {
    await withDeadline(channel.close(), ANSWER_TIMEOUT_MS, 'Closing a channel')
  } catch {
    // Closed already, by the broker or with its connection.
  }
}

// -------------------------------------------------------------------------------------------------------- consuming

type Handler = (message: SessionMessage, properties: MessageProperties) => Promise<void>

function openConsumer(options: RabbitMqOptions, publisher: Publisher, handler: Handler, prefetch: number): Consumer {
  const { url, queueType, connectionName, logger, onDeadLetter } = options
  const running = new Set<Promise<void>>()
  let current: { channel: Channel; consumerTag: string } | undefined
  let isClosing = false
  let closing: Promise<void> | undefined

  const handle = async (message: ConsumeMessage): Promise<'ack' | 'reject'> => {
    const decoded = decodeSessionMessage(message.content.toString('utf8'), message.properties.type)
    if ('fault' in decoded) {
      onDeadLetter?.(decoded.fault.reason)
      logger?.warn({ ...decoded.fault, message_id: message.properties.messageId }, 'message cannot be read')
      for (let attempt = 0; attempt < DEAD_LETTER_ATTEMPTS; attempt += 1) {
        if (attempt > 0) await pause(DEAD_LETTER_PAUSE_MS)
        if ((await publishDeadLetter(publisher, message, decoded.fault)) === 'confirmed') return 'ack'
      }
      // The broker itself moves it to the dead-letter queue, without our reason.
      return 'reject'
    }
    const requestId: unknown = message.properties.headers?.[REQUEST_ID_HEADER]
    try {
      await handler(decoded.message, typeof requestId === 'string' ? { requestId } : {})
    } catch (error) {
      logger?.warn({ session_id: decoded.message.session_id, error: String(error) }, 'message handler failed')
    }
    return 'ack'
  }

  const connection = openConnection({
    url,
    name: `${connectionName} consumer`,
    async setUp(model, lose) {
      await declareQueues(model, queueType, mismatchReporter(options))
      const channel = await openChannel(model)
      channel.on('close', () => {
        if (current?.channel === channel) current = undefined
        if (!isClosing) lose('The consuming channel closed')
      })
      await channel.prefetch(prefetch)
      const { consumerTag } = await channel.consume(SESSIONS_QUEUE, (message) => {
        // The broker cancelled the consumer: its queue was deleted, or moved, or its time-out struck.
        if (message === null) return lose('The broker cancelled the consumer')
        const done = handle(message)
          .then((verdict) => settle(channel, message, verdict))
          .finally(() => running.delete(done))
        running.add(done)
      })
      current = { channel, consumerTag }
    },
    onState: stateReporter('consumer', options),
  })

  const close = async (): Promise<void> => {
    isClosing = true
    if (current) {
      const { channel, consumerTag } = current
      try {
        await withDeadline(channel.cancel(consumerTag), ANSWER_TIMEOUT_MS, 'Cancelling the consumer')
      } catch {
        // Then the connection's end tells the broker.
      }
    }
    await Promise.all(running)
    // Closed by itself before the connection, so that no acknowledgement is overtaken.
    if (current) await closeChannel(current.channel)
    await connection.close()
  }
  return { close: () => (closing ??= close()) }
}

/** Settles on the channel that delivered; when that has closed, the broker delivers again, and no harm is done. */
function settle(channel: Channel, message: ConsumeMessage, verdict: 'ack' | 'reject'): void {
  try {
    if (verdict === 'ack') channel.ack(message)
    else channel.reject(message, false)
  } catch {
    // amqplib throws on a closed channel.
  }
}

// ----------------------------------------------------------------------------------------------------- dead letters

function publishDeadLetter(
  publisher: Publisher,
  message: ConsumeMessage,
  fault: MessageFault,
): Promise<PublishOutcome> {
  const { type, contentType, headers, messageId } = message.properties
  return publisher.publish(SESSIONS_DEAD_LETTER_QUEUE, message.content, {
    ...(typeof type === 'string' ? { type } : {}),
    ...(typeof contentType === 'string' ? { contentType } : {}),
    headers: {
      ...(typeof messageId === 'string' ? { 'x-original-message-id': messageId } : {}),
      ...(typeof headers?.[REQUEST_ID_HEADER] === 'string' ? { [REQUEST_ID_HEADER]: headers[REQUEST_ID_HEADER] } : {}),
      [REASON_HEADER]: fault.reason,
      [DETAIL_HEADER]: fault.detail,
      [DIED_AT_HEADER]: new Date().toISOString(),
    },
  })
}

function toDeadLetter({ content, properties }: GetMessage): DeadLetter {
  const headers = properties.headers ?? {}
  const reason: unknown = headers[REASON_HEADER]
  const detail: unknown = headers[DETAIL_HEADER]
  const diedAt: unknown = headers[DIED_AT_HEADER]
  const byBroker = headers['x-first-death-reason'] ?? 'unknown'
  const type: unknown = properties.type
  return {
    reason: isReason(reason) ? reason : 'broker',
    detail: typeof detail === 'string' ? detail : `Given up by the broker: ${byBroker}`,
    body: content.toString('utf8'),
    type: typeof type === 'string' ? type : null,
    diedAt: typeof diedAt === 'string' ? new Date(diedAt) : null,
  }
}

function isReason(value: unknown): value is DeadLetterReason {
  return value === 'not_json' || value === 'wrong_shape' || value === 'unknown_type'
}

// ------------------------------------------------------------------------------------------------------------- logs

function stateReporter(role: 'publisher' | 'consumer', { logger, onState }: RabbitMqOptions) {
  return (state: ConnectionState, error?: Error): void => {
    onState?.(role, state)
    if (state === 'up') logger?.info({ role }, 'broker connection is up')
    else if (state === 'blocked') logger?.warn({ role }, 'the broker takes no messages: it is short of memory or disk')
    else logger?.warn({ role, error: error?.message }, 'broker connection is down')
  }
}

function mismatchReporter({ logger }: RabbitMqOptions) {
  return (queue: string, error: Error): void => {
    logger?.warn({ queue, error: error.message }, 'the queue exists with other arguments and is used as it is')
  }
}
