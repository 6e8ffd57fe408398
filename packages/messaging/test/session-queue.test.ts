import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { SessionMessage } from '@workflow-service/contract'
import { createTestBroker, waitUntil } from '@workflow-service/testkit'
import { connectRabbitMq, createInProcessQueue, type SessionQueue } from '../src/index.ts'

const sessionId = (n: number) => `0190f6a4-5f4e-7cc2-9d4a-${String(n).padStart(12, '0')}`
const unreadable: SessionMessage = { session_id: 'no session' }

async function connect(queueType: 'quorum' | 'classic'): Promise<SessionQueue> {
  const fresh = await createTestBroker()
  const queue = connectRabbitMq({ url: fresh.url, queueType, connectionName: 'test' })
  await waitUntil(async () => queue.ping().then(() => true))
  const close = async () => {
    await queue.close()
    await fresh.drop()
  }
  return { ...queue, close }
}

// The tests of connectRabbitMq use a classic queue: only its declaration is another one.
describe.each([
  ['the in-process queue', async () => createInProcessQueue()],
  ['RabbitMQ', () => connect('quorum')],
])('%s', (_name, create) => {
  let queue: SessionQueue
  beforeEach(async () => {
    queue = await create()
  })
  afterEach(() => queue.close())

  test('calls the handler with a published message and its request id', async () => {
    const received: unknown[] = []
    await queue.consume(async (...given) => void received.push(given), { prefetch: 10 })
    expect(await queue.publish({ session_id: sessionId(1) }, { requestId: 'r-1' })).toBe('confirmed')
    expect(await queue.publish({ session_id: sessionId(2) })).toBe('confirmed')
    await waitUntil(() => received.length === 2)
    expect(received).toEqual([
      [{ session_id: sessionId(1) }, { requestId: 'r-1' }],
      [{ session_id: sessionId(2) }, {}],
    ])
  })

  test('calls the handler for each session of a message, which is one', async () => {
    const received: string[] = []
    const message = { session_ids: [sessionId(1), sessionId(2), sessionId(3)] }
    expect(await queue.publish(message, { requestId: 'r-1' })).toBe('confirmed')
    await waitUntil(async () => (await queue.depth()).ready === 1)
    const ends: (() => void)[] = []
    const consumer = await queue.consume(
      ({ session_id }) => {
        received.push(session_id)
        return new Promise<void>((end) => ends.push(end))
      },
      { prefetch: 1 },
    )
    await waitUntil(() => received.length === 3)
    expect(received).toEqual(message.session_ids)
    for (const end of ends) end()
    await consumer.close()
    expect(await queue.depth()).toEqual({ ready: 0, dead: 0 })
  })

  test('keeps messages until there is a consumer, and delivers each of them once', async () => {
    await Promise.all(Array.from({ length: 50 }, (_, n) => queue.publish({ session_id: sessionId(n) })))
    await waitUntil(async () => (await queue.depth()).ready === 50)
    const received: string[] = []
    const take = async ({ session_id }: SessionMessage) => void received.push(session_id)
    await queue.consume(take, { prefetch: 5 })
    await queue.consume(take, { prefetch: 5 })
    await waitUntil(() => received.length >= 50)
    expect(new Set(received).size).toBe(50)
    await waitUntil(async () => (await queue.depth()).ready === 0)
  })

  test('runs at most `prefetch` handlers at once', async () => {
    const ends: (() => void)[] = []
    await queue.consume(() => new Promise<void>((end) => ends.push(end)), { prefetch: 3 })
    await Promise.all(Array.from({ length: 7 }, (_, n) => queue.publish({ session_id: sessionId(n) })))
    await waitUntil(() => ends.length === 3)
    // Polled: a quorum queue counts 0 when its leader does not answer the broker within 250 ms.
    await waitUntil(async () => (await queue.depth()).ready === 4)
    expect(ends).toHaveLength(3)
    ends.at(0)?.()
    await waitUntil(() => ends.length === 4)
    for (const end of ends) end()
    await waitUntil(() => ends.length === 7)
    for (const end of ends) end()
  })

  test('does not deliver a message again when its handler fails', async () => {
    let calls = 0
    await queue.consume(
      async () => {
        calls++
        throw new Error('no')
      },
      { prefetch: 1 },
    )
    await queue.publish({ session_id: sessionId(1) })
    await queue.publish({ session_id: sessionId(2) })
    await waitUntil(() => calls === 2)
    expect((await queue.depth()).ready).toBe(0)
  })

  test('closing a consumer waits for its handlers and receives no further message', async () => {
    const { promise: held, resolve: release } = Promise.withResolvers<void>()
    const received: string[] = []
    const consumer = await queue.consume(
      async ({ session_id }) => {
        received.push(session_id)
        await held
      },
      { prefetch: 1 },
    )
    await queue.publish({ session_id: sessionId(1) })
    await waitUntil(() => received.length === 1)
    let isClosed = false
    const closing = consumer.close().then(() => (isClosed = true))
    await queue.publish({ session_id: sessionId(2) })
    await waitUntil(async () => (await queue.depth()).ready === 1)
    expect(isClosed).toBe(false)
    release()
    await closing
    await consumer.close()
    expect(received).toEqual([sessionId(1)])
    await waitUntil(async () => (await queue.depth()).ready === 1)
  })

  test('a closed queue publishes nothing and rejects requests', async () => {
    await queue.close()
    expect(await queue.publish({ session_id: sessionId(1) })).toBe('failed')
    await expect(queue.ping()).rejects.toThrow(/closed|not connected/)
    await expect(queue.depth()).rejects.toThrow(/closed|not connected/)
  })
})

test.each(['quorum', 'classic'] as const)(
  'a %s queue moves a message that cannot be read to the dead letters with its reason, and delivers the next one',
  async (queueType) => {
    const queue = await connect(queueType)
    const received: string[] = []
    await queue.consume(async ({ session_id }) => void received.push(session_id), { prefetch: 1 })
    await queue.publish(unreadable)
    await queue.publish({ session_id: sessionId(2) })
    await waitUntil(() => received.length === 1)
    expect(received).toEqual([sessionId(2)])
    await waitUntil(async () => (await queue.depth()).dead === 1)
    const letters = await queue.deadLetters(10)
    expect(letters).toEqual([
      {
        reason: 'wrong_shape',
        detail: expect.stringContaining('session_id'),
        body: JSON.stringify(unreadable),
        type: 'workflow.session.v1',
        diedAt: expect.any(Date),
      },
    ])
    expect(await queue.deadLetters(10)).toEqual(letters)
    await waitUntil(async () => (await queue.depth()).dead === 1)
    await queue.close()
  },
)
