import { SESSION_MESSAGE_TYPE, type SessionMessage } from '@workflow-service/contract'
import { decodeSessionMessage } from './decode-session-message.ts'
import type { Consumer, DeadLetter, MessageProperties, SessionQueue } from './session-queue.ts'

interface Waiting {
  readonly body: string
  readonly properties: MessageProperties
}

interface Consumption {
  readonly handler: (message: SessionMessage, properties: MessageProperties) => Promise<void>
  readonly prefetch: number
  readonly running: Set<Promise<void>>
}

/** As many dead letters as RabbitMQ's queue keeps. */
const MAX_DEAD_LETTERS = 10_000

/**
 * The queue within one process, for `npm start` and for tests that are not about the broker: the promises of RabbitMQ's,
 * but what waits is gone with the process (the sweep finds it again).
 */
export function createInProcessQueue(): SessionQueue {
  const waiting: Waiting[] = []
  const dead: DeadLetter[] = []
  const consumptions: Consumption[] = []
  let isClosed = false
  let isScheduled = false

  const schedule = (): void => {
    if (isScheduled) return
    isScheduled = true
    setImmediate(() => {
      isScheduled = false
      handOut()
    })
  }

  const handOut = (): void => {
    for (let idle = 0; waiting.length > 0 && idle < consumptions.length;) {
      const consumption = consumptions.shift()!
      consumptions.push(consumption)
      if (consumption.running.size >= consumption.prefetch) {
        idle++
        continue
      }
      idle = 0
      handle(consumption, waiting.shift()!)
    }
  }

  const handle = ({ handler, running }: Consumption, { body, properties }: Waiting): void => {
    const decoded = decodeSessionMessage(body, SESSION_MESSAGE_TYPE)
    if ('fault' in decoded) {
      dead.push({ ...decoded.fault, body, type: SESSION_MESSAGE_TYPE, diedAt: new Date() })
      if (dead.length > MAX_DEAD_LETTERS) dead.shift()
      return
    }
    const done = handler(decoded.message, properties)
      .catch(() => {})
      .finally(() => {
        running.delete(done)
        schedule()
      })
    running.add(done)
  }

  const stop = async (consumption: Consumption): Promise<void> => {
    const index = consumptions.indexOf(consumption)
    if (index >= 0) consumptions.splice(index, 1)
    await Promise.all(consumption.running)
  }

  return {
    async publish(message, properties = {}) {
      if (isClosed) return 'failed'
      waiting.push({ body: JSON.stringify(message), properties })
      schedule()
      return 'confirmed'
    },
    async consume(handler, { prefetch }) {
      const consumption: Consumption = { handler, prefetch, running: new Set() }
      consumptions.push(consumption)
      schedule()
      const consumer: Consumer = { close: () => stop(consumption) }
      return consumer
    },
    async depth() {
      assertOpen(isClosed)
      return { ready: waiting.length, dead: dead.length }
    },
    async deadLetters(limit) {
      assertOpen(isClosed)
      return dead.slice(0, limit)
    },
    async ping() {
      assertOpen(isClosed)
    },
    async close() {
      isClosed = true
      await Promise.all([...consumptions].map(stop))
    },
  }
}

function assertOpen(isClosed: boolean): void {
  if (isClosed) throw new Error('The queue is closed')
}
