import { afterEach, describe, expect, test } from '@jest/globals'
import {
  FIRST_ORGANIZATION,
  newId,
  type NextRun,
  type AcquiredSessions,
  type AcquiredSession,
} from '@workflow-service/database'
import { createLogger, createMetrics } from '@workflow-service/service-kit'
import { waitUntil } from '@workflow-service/testkit'
import type { AppContext } from './app-context.ts'
import { createHeldSessions } from './held-sessions.ts'
import { type Intake, startIntake } from './intake.ts'
import { createRunnerMetrics } from './runner-metrics.ts'

const NEVER_MS = 600_000

let intake: Intake
let endAll: () => void
afterEach(async () => {
  await intake.stop()
  endAll()
  await intake.settle()
})

const take = (sessionId: string): AcquiredSession => ({
  lease: { sessionId, epoch: 1 },
  organizationId: newId(),
  run: undefined,
  sources: [],
})
const nothing = async () => undefined

/** An intake with so many places, before a store that has what it is asked for; sessions end when they are told to. */
async function start(options: {
  places: number
  holdMs?: number
  ensureFresh?: () => Promise<void>
  /** How many sessions may be held: they are of one organization. */
  share?: number
  /** Whether each sweep leaves something behind. */
  isMoreSwept?: boolean
}) {
  const { places, holdMs = NEVER_MS, ensureFresh = async () => {}, share = places, isMoreSwept = false } = options
  let answering = Promise.resolve()
  const held = createHeldSessions(places)
  const asked: (readonly string[])[] = []
  let sweeps = 0
  const ends = new Map<string, () => void>()
  const metrics = createMetrics('test')
  const ctx = {
    held,
    timing: { sweepMs: NEVER_MS, holdMs },
    logger: createLogger({ service: 'test', level: 'silent' }),
    runnerMetrics: createRunnerMetrics(metrics, { held: () => 0, places: () => 0, depth: nothing, backlog: nothing }),
    sessionQueue: { publish: async () => 'confirmed' },
    store: {
      async take(sessionIds: readonly string[]): Promise<AcquiredSessions> {
        asked.push(sessionIds)
        const taken = sessionIds.slice(0, share - held.size)
        await answering
        return { sessions: taken.map(take), isMore: taken.length < sessionIds.length }
      },
      async takeWaiting(): Promise<AcquiredSessions & { next: string }> {
        sweeps++
        await answering
        return { sessions: [], isMore: isMoreSwept, next: FIRST_ORGANIZATION }
      },
      claimNext: ({ sessionId }: AcquiredSession['lease']): Promise<NextRun> =>
        new Promise((resolve) => {
          ends.set(sessionId, () => resolve({ kind: 'idle' }))
        }),
      release: nothing,
    },
  } as unknown as AppContext
  endAll = () => {
    for (const end of ends.values()) end()
  }
  intake = startIntake(ctx, { ensureFresh })
  if (!options.ensureFresh) await waitUntil(() => sweeps === 1)
  return {
    held,
    asked,
    end: (sessionId: string) => ends.get(sessionId)!(),
    /** From now on the store looks, but answers no statement before the function returned is called. */
    holdAnswers() {
      const { promise, resolve } = Promise.withResolvers<void>()
      answering = promise
      return resolve
    },
    get sweeps() {
      return sweeps
    },
  }
}

/** Whether the promise is still pending after everything that can happen by itself has happened. */
async function isPending(promise: Promise<unknown>): Promise<boolean> {
  let isSettled = false
  void promise.finally(() => (isSettled = true))
  for (let turn = 0; turn < 10; turn++) await new Promise((resume) => setImmediate(resume))
  return !isSettled
}

describe('with all places taken', () => {
  test('a message is held, so that the others go to runners that have places, until one is free here', async () => {
    const { asked, end } = await start({ places: 1 })
    await intake.offer('first')
    const offering = intake.offer('second')
    expect(await isPending(offering)).toBe(true)
    expect(asked).toEqual([['first']])
    end('first')
    await offering
  })

  test('a message is let go after a moment, and swept up as soon as a place is free', async () => {
    const started = await start({ places: 1, holdMs: 1 })
    await intake.offer('first')
    await intake.offer('second')
    expect(started.sweeps).toBe(1)
    started.end('first')
    await waitUntil(() => started.sweeps === 2)
    expect(started.asked).toEqual([['first']])
  })

  test('stopping holds no message back', async () => {
    await start({ places: 1 })
    await intake.offer('first')
    const offering = intake.offer('second')
    expect(await isPending(offering)).toBe(true)
    await intake.stop()
    await offering
  })
})

describe('with places free', () => {
  test('messages that come together are asked for together, each once', async () => {
    const { asked, held } = await start({ places: 10 })
    await Promise.all(['a', 'b', 'a'].map((sessionId) => intake.offer(sessionId)))
    expect(asked).toEqual([['a', 'b']])
    expect(held.size).toBe(2)
  })

  test('nothing is taken before the leases held are known to be fresh', async () => {
    const { promise: fresh, resolve: refresh } = Promise.withResolvers<void>()
    const { asked } = await start({ places: 10, ensureFresh: () => fresh })
    const offering = intake.offer('a')
    expect(await isPending(offering)).toBe(true)
    expect(asked).toEqual([])
    refresh()
    await offering
    expect(asked).toEqual([['a']])
  })

  test('a message is let go when the leases cannot be renewed, and that is not tried again at once', async () => {
    let tries = 0
    const started = await start({
      places: 10,
      ensureFresh: async () => {
        tries++
        throw new Error('away')
      },
    })
    await waitUntil(() => tries === 1)
    await intake.offer('a')
    expect(await isPending(new Promise(() => {}))).toBe(true)
    expect(tries).toBe(2)
    expect(started.asked).toEqual([])
    expect(started.sweeps).toBe(0)
  })

  test('what a share left behind is swept up as soon as a session ends', async () => {
    const started = await start({ places: 10, share: 1 })
    await Promise.all(['a', 'b'].map((sessionId) => intake.offer(sessionId)))
    expect(started.sweeps).toBe(1)
    started.end('a')
    await waitUntil(() => started.sweeps === 2)
    expect(started.held.size).toBe(0)
  })

  test('what a share left of a message is swept up, even where a session ended while the statement was under way', async () => {
    const started = await start({ places: 10, share: 1 })
    await intake.offer('a')
    const answer = started.holdAnswers()
    const offering = intake.offer('b')
    await waitUntil(() => started.asked.length === 2)
    started.end('a')
    await waitUntil(() => started.held.size === 0)
    expect(started.sweeps).toBe(1)
    answer()
    await offering
    await waitUntil(() => started.sweeps === 2)
  })

  test('what a sweep left is swept up, even where a session ended while it was under way', async () => {
    const started = await start({ places: 10, share: 2, isMoreSwept: true })
    await Promise.all(['a', 'b'].map((sessionId) => intake.offer(sessionId)))
    const answer = started.holdAnswers()
    started.end('a')
    await waitUntil(() => started.sweeps === 2)
    started.end('b')
    await waitUntil(() => started.held.size === 0)
    expect(started.sweeps).toBe(2)
    answer()
    await waitUntil(() => started.sweeps === 3)
  })

  test('nothing is taken once it has stopped', async () => {
    const { asked } = await start({ places: 10 })
    await intake.stop()
    await intake.offer('a')
    expect(asked).toEqual([])
  })
})
