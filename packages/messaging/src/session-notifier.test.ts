import { expect, test } from '@jest/globals'
import type { SessionMessage, SessionsMessage } from '@workflow-service/contract'
import { createInProcessQueue } from './in-process-queue.ts'
import { createSessionNotifier } from './session-notifier.ts'

/** What is published of these notifications: those of an inner list come together. */
async function publishedOf(turns: string[][]) {
  const published: (SessionMessage | SessionsMessage | string)[] = []
  const sessionQueue = createInProcessQueue()
  const outcomes: string[] = []
  const notifier = createSessionNotifier({
    sessionQueue: {
      ...sessionQueue,
      publish: async (message, { requestId = 'none' } = {}) => {
        published.push(message, requestId)
        return 'confirmed'
      },
    },
    onOutcome: (outcome) => outcomes.push(outcome),
  })
  for (const turn of turns) {
    for (const id of turn) notifier.notify(id, `request of ${id}`)
    // The responses to the starts follow after microtasks, too.
    await Promise.resolve()
  }
  await notifier.close()
  await sessionQueue.close()
  return { published, outcomes }
}

test('one session has a message of version 1 with its request id, published at once', async () => {
  const { published } = await publishedOf([['a'], ['b']])
  expect(published).toEqual([{ session_id: 'a' }, 'request of a', { session_id: 'b' }, 'request of b'])
})

test('the sessions of starts that were recorded together share a message, and each has its outcome', async () => {
  const { published, outcomes } = await publishedOf([['a', 'b', 'c']])
  expect(published).toEqual([{ session_ids: ['a', 'b', 'c'] }, 'none'])
  expect(outcomes).toEqual(['confirmed', 'confirmed', 'confirmed'])
})

test('a message has at most 128 sessions', async () => {
  const { published } = await publishedOf([Array.from({ length: 300 }, (_, n) => String(n))])
  const sizes = published.flatMap((message) => (typeof message === 'string' ? [] : Object.values(message)[0]!.length))
  expect(sizes).toEqual([128, 128, 44])
})
