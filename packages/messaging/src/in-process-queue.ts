import type { MessageHandler, MessageProperties, SessionQueue } from './session-queue.ts'

interface QueuedMessage {
  readonly sessionIds: readonly string[]
  readonly properties: MessageProperties
}

interface Subscription {
  readonly handler: MessageHandler
  readonly prefetch: number
  readonly running: Set<Promise<unknown>>
}

/**
 * Creates a session queue inside of this process, for `npm start` and for tests that are not about RabbitMQ. It keeps
 * the promises of RabbitMQ's, but its messages end with the process; the runner's sweep finds their sessions. It has no
 * dead letters: no other program writes its messages.
 */
export function createInProcessQueue(): SessionQueue {
  const messages: QueuedMessage[] = []
  const subscriptions = new Set<Subscription>()
  let isClosed = false
  let isScheduled = false

  const scheduleDelivery = (): void => {
    if (isScheduled) return
    isScheduled = true
    setImmediate(() => {
      isScheduled = false
      deliver()
    })
  }

  /** Delivers until no message is left or every subscription runs `prefetch` handlers. */
  const deliver = (): void => {
    for (;;) {
      const free = [...subscriptions].find(({ running, prefetch }) => running.size < prefetch)
      const message = free && messages.shift()
      if (!message) return
      const handled = message.sessionIds.map((id) => free.handler({ session_id: id }, message.properties))
      const done = Promise.allSettled(handled).finally(() => {
        free.running.delete(done)
        scheduleDelivery()
      })
      free.running.add(done)
    }
  }

  const unsubscribe = async (subscription: Subscription): Promise<void> => {
    subscriptions.delete(subscription)
    await Promise.all(subscription.running)
  }

  const assertOpen = (): void => {
    if (isClosed) throw new Error('The queue is closed')
  }

  return {
    async publish(message, properties = {}) {
      if (isClosed) return 'failed'
      messages.push({ sessionIds: 'session_ids' in message ? message.session_ids : [message.session_id], properties })
      scheduleDelivery()
      return 'confirmed'
    },
    async consume(handler, { prefetch }) {
      const subscription: Subscription = { handler, prefetch, running: new Set() }
      subscriptions.add(subscription)
      scheduleDelivery()
      return { close: () => unsubscribe(subscription) }
    },
    async depth() {
      assertOpen()
      return { ready: messages.length, dead: 0 }
    },
    deadLetters: async () => [],
    async ping() {
      assertOpen()
    },
    async close() {
      isClosed = true
      await Promise.all([...subscriptions].map(unsubscribe))
    },
  }
}
