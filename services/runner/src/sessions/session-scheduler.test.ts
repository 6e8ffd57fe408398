import { afterEach, describe, expect, test } from '@jest/globals'
import { type AcquiredSessions, NIL_UUID, newId, type NextRun } from '@workflow-service/database'
import { createLogger, createMetrics } from '@workflow-service/service-kit'
import { waitUntil } from '@workflow-service/testkit'
import type { RunnerContext } from '../runner-context.ts'
import { createRunnerMetrics } from '../metrics.ts'
import { createActiveSessions, type LeasedSession } from './active-sessions.ts'
import { SessionScheduler } from './session-scheduler.ts'

const NEVER_MS = 600_000

let scheduler: SessionScheduler
let endAll: () => void
afterEach(async () => {
  await scheduler.stop()
  endAll()
  await scheduler.whenIdle()
})

const noValue = async () => undefined

/** A scheduler on a store that has every session it is asked for. A session is active until `end` is called for it. */
async function startScheduler(options: {
  slots: number
  slotWaitMs?: number
  ensureFresh?: () => Promise<void>
  /** How many sessions may be active at once: all are of one organization. */
  share?: number
  /** Whether each sweep leaves sessions waiting. */
  doesSweepLeaveMore?: boolean
  /** The sessions that the first sweeps find, each before it has looked at all organizations. */
  sweepsFind?: readonly (readonly string[])[]
}) {
  const {
    slots,
    slotWaitMs = NEVER_MS,
    ensureFresh = async () => {},
    share = slots,
    doesSweepLeaveMore = false,
    sweepsFind = [],
  } = options
  let answering = Promise.resolve()
  const activeSessions = createActiveSessions(slots)
  const acquired: (readonly string[])[] = []
  const sweptFrom: string[] = []
  const organizations = [NIL_UUID, ...sweepsFind.map(newId), NIL_UUID]
  const ends = new Map<string, () => void>()
  const ctx = {
    activeSessions,
    timing: { sweepMs: NEVER_MS, slotWaitMs },
    logger: createLogger({ service: 'test', level: 'silent' }),
    runnerMetrics: createRunnerMetrics(createMetrics('test'), slots, activeSessions),
    sessionQueue: { publish: async () => 'confirmed' },
    sessionStore: {
      async acquire(sessionIds: readonly string[]): Promise<AcquiredSessions> {
        acquired.push(sessionIds)
        const fitting = sessionIds.slice(0, share - activeSessions.size)
        await answering
        return { sessions: fitting.map(toAcquired), isMore: fitting.length < sessionIds.length }
      },
      async acquireWaiting(from: string): Promise<AcquiredSessions & { next: string }> {
        const found = sweepsFind[sweptFrom.length] ?? []
        sweptFrom.push(from)
        await answering
        const next = organizations[sweptFrom.length] ?? NIL_UUID
        return { sessions: found.map(toAcquired), isMore: doesSweepLeaveMore, next }
      },
      claimNext: ({ sessionId }: LeasedSession): Promise<NextRun> =>
        new Promise((resolve) => {
          ends.set(sessionId, () => resolve({ kind: 'idle' }))
        }),
      release: noValue,
    },
  } as unknown as RunnerContext
  endAll = () => {
    for (const end of ends.values()) end()
  }
  scheduler = new SessionScheduler(ctx, { ensureFresh })
  if (!options.ensureFresh) await waitUntil(() => sweptFrom.length > 0)
  return {
    activeSessions,
    acquired,
    end: (sessionId: string) => ends.get(sessionId)!(),
    /** Delays the answers of all further statements until the returned function is called. */
    delayAnswers() {
      const { promise, resolve } = Promise.withResolvers<void>()
      answering = promise
      return resolve
    },
    organizations,
    sweptFrom,
    get sweeps() {
      return sweptFrom.length
    },
  }
}

const toAcquired = (sessionId: string): AcquiredSessions['sessions'][number] => ({
  lease: { sessionId, epoch: 1 },
  organizationId: newId(),
  exhaustedRunId: null,
  run: null,
  sources: [],
})

/** Whether the promise is still pending after all work that needs no timer is done. */
async function isPending(promise: Promise<unknown>): Promise<boolean> {
  let isSettled = false
  void promise.finally(() => (isSettled = true))
  for (let turn = 0; turn < 10; turn++) await new Promise((resume) => setImmediate(resume))
  return !isSettled
}

describe('while all slots are taken', () => {
  test('a message waits for a free slot, so that the queue gives the others to runners with free slots', async () => {
    const { acquired, end } = await startScheduler({ slots: 1 })
    await scheduler.offer('first')
    const offering = scheduler.offer('second')
    expect(await isPending(offering)).toBe(true)
    expect(acquired).toEqual([['first']])
    end('first')
    await offering
  })

  test('a message is acknowledged after slotWaitMs, and a sweep follows as soon as a slot is free', async () => {
    const started = await startScheduler({ slots: 1, slotWaitMs: 1 })
    await scheduler.offer('first')
    await scheduler.offer('second')
    expect(started.sweeps).toBe(1)
    started.end('first')
    await waitUntil(() => started.sweeps === 2)
    expect(started.acquired).toEqual([['first']])
  })

  test('stopping ends the wait of a message', async () => {
    await startScheduler({ slots: 1 })
    await scheduler.offer('first')
    const offering = scheduler.offer('second')
    expect(await isPending(offering)).toBe(true)
    await scheduler.stop()
    await offering
  })
})

describe('with free slots', () => {
  test('messages that arrive together share a statement, each session once', async () => {
    const { acquired, activeSessions } = await startScheduler({ slots: 10 })
    await Promise.all(['a', 'b', 'a'].map((sessionId) => scheduler.offer(sessionId)))
    expect(acquired).toEqual([['a', 'b']])
    expect(activeSessions.size).toBe(2)
  })

  test('messages that one statement does not hold go into the next, at once', async () => {
    const { acquired } = await startScheduler({ slots: 300 })
    const ids = Array.from({ length: 201 }, (_each, index) => String(index))
    await Promise.all(ids.map((sessionId) => scheduler.offer(sessionId)))
    expect(acquired).toEqual([ids.slice(0, 200), ids.slice(200)])
  })

  test('no session is acquired before the leases are fresh', async () => {
    const { promise: fresh, resolve: refresh } = Promise.withResolvers<void>()
    const { acquired } = await startScheduler({ slots: 10, ensureFresh: () => fresh })
    const offering = scheduler.offer('a')
    expect(await isPending(offering)).toBe(true)
    expect(acquired).toEqual([])
    refresh()
    await offering
    expect(acquired).toEqual([['a']])
  })

  test('when the leases cannot be renewed, messages are acknowledged and no retry follows at once', async () => {
    let renewals = 0
    const started = await startScheduler({
      slots: 10,
      ensureFresh: async () => {
        renewals++
        throw new Error('unavailable')
      },
    })
    await waitUntil(() => renewals === 1)
    await scheduler.offer('a')
    expect(await isPending(new Promise(() => {}))).toBe(true)
    expect(renewals).toBe(2)
    expect(started.acquired).toEqual([])
    expect(started.sweeps).toBe(0)
  })

  test('a sweep acquires what the share left waiting as soon as a session ends', async () => {
    const started = await startScheduler({ slots: 10, share: 1 })
    await Promise.all(['a', 'b'].map((sessionId) => scheduler.offer(sessionId)))
    expect(started.sweeps).toBe(1)
    started.end('a')
    await waitUntil(() => started.sweeps === 2)
    expect(started.activeSessions.size).toBe(0)
  })

  test('the same when the session ended before the statement answered that sessions are left waiting', async () => {
    const started = await startScheduler({ slots: 10, share: 1 })
    await scheduler.offer('a')
    const answer = started.delayAnswers()
    const offering = scheduler.offer('b')
    await waitUntil(() => started.acquired.length === 2)
    started.end('a')
    await waitUntil(() => started.activeSessions.size === 0)
    expect(started.sweeps).toBe(1)
    answer()
    await offering
    await waitUntil(() => started.sweeps === 2)
  })

  test('the same when the session ended while a sweep was under way', async () => {
    const started = await startScheduler({ slots: 10, share: 2, doesSweepLeaveMore: true })
    await Promise.all(['a', 'b'].map((sessionId) => scheduler.offer(sessionId)))
    const answer = started.delayAnswers()
    started.end('a')
    await waitUntil(() => started.sweeps === 2)
    started.end('b')
    await waitUntil(() => started.activeSessions.size === 0)
    expect(started.sweeps).toBe(2)
    answer()
    await waitUntil(() => started.sweeps === 3)
  })

  test('a sweep goes on behind the organizations of the last: at once if that found sessions, else when a slot is free', async () => {
    const started = await startScheduler({ slots: 10, sweepsFind: [['a'], []] })
    await waitUntil(() => started.sweeps === 2)
    expect(await isPending(new Promise(() => {}))).toBe(true)
    expect(started.sweeps).toBe(2)
    started.end('a')
    await waitUntil(() => started.sweeps === 3)
    expect(started.sweptFrom).toEqual(started.organizations.slice(0, 3))
  })

  test('nothing is acquired after the scheduler stopped', async () => {
    const { acquired } = await startScheduler({ slots: 10 })
    await scheduler.stop()
    await scheduler.offer('a')
    expect(acquired).toEqual([])
  })
})
