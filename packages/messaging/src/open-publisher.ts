import { randomUUID } from 'node:crypto'
import { withTimeout } from '@workflow-service/service-kit'
import type { Channel, ChannelModel, ConfirmChannel, Options } from 'amqplib'
import { closeChannel, onChannelClose, openChannel } from './channels.ts'
import { declareQueues, isQueueMissing } from './declare-queues.ts'
import { openConnection, type RabbitMqOptions } from './open-connection.ts'
import type { PublishOutcome } from './session-queue.ts'

/** By message id. */
type UnconfirmedMessages = Map<string, { readonly publishedMs: number; isReturned: boolean }>

/**
 * Limits the memory that a broker costs which does not confirm: with so many unconfirmed messages, publishing fails.
 */
const MAX_UNCONFIRMED = 10_000
/** After this time the connection is replaced. */
const CONFIRM_TIMEOUT_MS = 30_000
const CONFIRM_CHECK_INTERVAL_MS = 5_000
const REQUEST_TIMEOUT_MS = 2_000

/** Opens the connection that publishes and that carries requests such as queue lengths. */
export function openPublisher(options: RabbitMqOptions) {
  const idPrefix = randomUUID()
  let sequence = 0
  let isBlocked = false
  let current: { model: ChannelModel; channel: ConfirmChannel; unconfirmed: UnconfirmedMessages } | undefined

  const onState: RabbitMqOptions['onState'] = (role, state) => {
    isBlocked = state === 'blocked'
    options.onState?.(role, state)
  }
  const connection = openConnection('publisher', { ...options, onState }, async (model, reconnect) => {
    const channel = await model.createConfirmChannel()
    const unconfirmed: UnconfirmedMessages = new Map()
    const confirmCheck = setInterval(() => {
      const [oldest] = unconfirmed.values()
      if (!isBlocked && oldest && performance.now() - oldest.publishedMs > CONFIRM_TIMEOUT_MS) {
        reconnect(`The broker confirmed nothing for ${CONFIRM_TIMEOUT_MS} ms`)
      }
    }, CONFIRM_CHECK_INTERVAL_MS)
    // The broker confirms a message that no queue takes too, after it has returned it.
    channel.on('return', ({ properties }) => {
      const returned = unconfirmed.get(String(properties.messageId))
      if (returned) returned.isReturned = true
    })
    onChannelClose(channel, (reason) => {
      clearInterval(confirmCheck)
      if (current?.channel === channel) current = undefined
      reconnect(reason)
    })
    isBlocked = false
    current = { model, channel, unconfirmed }
  })

  return {
    /** Never rejects. */
    publish(queue: string, content: Buffer, publishOptions: Options.Publish): Promise<PublishOutcome> {
      if (!current || isBlocked || current.unconfirmed.size >= MAX_UNCONFIRMED) return Promise.resolve('failed')
      const { channel, unconfirmed } = current
      const { promise, resolve } = Promise.withResolvers<PublishOutcome>()
      const messageId = `${idPrefix}-${++sequence}`
      const message = { publishedMs: performance.now(), isReturned: false }
      unconfirmed.set(messageId, message)
      const confirm = (error: unknown): void => {
        unconfirmed.delete(messageId)
        resolve(error || message.isReturned ? 'failed' : 'confirmed')
      }
      const timestamp = Math.trunc(Date.now() / 1_000)
      try {
        // `mandatory` makes the broker return a message that no queue takes.
        const fixedOptions = { persistent: true, mandatory: true, timestamp, messageId }
        channel.publish('', queue, content, { ...publishOptions, ...fixedOptions }, confirm)
      } catch (error) {
        // amqplib throws on a channel that has just closed.
        confirm(error)
      }
      return promise
    },
    /**
     * Runs a request on a separate channel. Rejects while the broker is unavailable or when it takes longer than 2 s.
     */
    async request<Answer>(run: (channel: Channel) => Promise<Answer>): Promise<Answer> {
      const reason = connection.whyDown()
      if (!current) throw new Error(`RabbitMQ is not connected${reason === undefined ? '' : `: ${reason}`}`)
      const makeError = () => new Error(`RabbitMQ did not answer within ${REQUEST_TIMEOUT_MS} ms`)
      // The broker reads nothing from a connection that it has blocked.
      if (isBlocked) throw new Error('RabbitMQ answers nothing because of its memory or disk alarm')
      const { model } = current
      const opening = openChannel(model)
      const channel = await withTimeout(opening, REQUEST_TIMEOUT_MS, makeError).catch((error: unknown) => {
        // Channels that open late would pile up until the connection has none left.
        opening.then(closeChannel, () => {})
        throw error
      })
      try {
        return await withTimeout(run(channel), REQUEST_TIMEOUT_MS, makeError)
      } catch (error) {
        // A queue was deleted. The next request finds it; without a consumer, nothing else declares it again.
        if (isQueueMissing(error)) {
          const declaring = declareQueues(model, options.queueType, () => {})
          await withTimeout(declaring, REQUEST_TIMEOUT_MS).catch(() => {})
        }
        throw error
      } finally {
        await closeChannel(channel)
      }
    },
    close: () => connection.close(),
  }
}
