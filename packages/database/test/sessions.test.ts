import { randomBytes } from 'node:crypto'
import { beforeEach, describe, expect, test } from '@jest/globals'
import { beginTransaction, untilLocked } from '@workflow-service/testkit'
import {
  appendSteps,
  serializeStep,
  claimNextRun,
  closeSession,
  type Database,
  finishRuns,
  type Lease,
  listSmallSources,
  listSourceNames,
  measureBacklog,
  newId,
  openSession,
  operatorOf,
  readSources,
  readSteps,
  releaseSessions,
  renewLeases,
  showRun,
  showSession,
  acquireSessions,
  acquireWaitingSessions,
} from '../src/index.ts'
import {
  ACQUIRE_ALL,
  createStartable,
  listWrongEnds,
  start,
  type Startable,
  useNewStartable,
} from './support/start-fixtures.ts'

const acme = useNewStartable()
let db: Database
beforeEach(() => void ({ db } = acme))

const runner = (owner: string, options: Partial<typeof ACQUIRE_ALL> = {}) => ({ ...ACQUIRE_ALL, owner, ...options })

/** The two ways in which runners acquire sessions. */
const BOTH_WAYS = [
  ['by their ids', (as: ReturnType<typeof runner>, ids: string[]) => acquireSessions(db, as, ids)],
  ['in the sweep', (as: ReturnType<typeof runner>) => acquireWaitingSessions(db, as)],
] as const

const acquire = async (owner: string, sessionId: string) =>
  (await acquireSessions(db, runner(owner), [sessionId])).sessions[0]

/** Records so many starts, each in a new session. */
async function startMany(count: number, of: Startable = acme): Promise<string[]> {
  const ids: string[] = []
  for (let n = 0; n < count; n++) ids.push((await start(db, of)).sessionId)
  return ids
}

/** The rest of the lease, to the next 10 seconds. */
async function leaseSeconds(sessionId: string): Promise<number> {
  const { rows } = await db.pool.query<{ seconds: number }>(
    'SELECT 10 * ceil(extract(epoch FROM lease_until - clock_timestamp()) / 10)::int AS seconds FROM sessions WHERE id = $1',
    [sessionId],
  )
  return rows[0]!.seconds
}

const isWaiting = async (sessionId: string): Promise<boolean> => {
  const { rowCount } = await db.pool.query('SELECT FROM sessions WHERE id = $1 AND waiting_since <= now()', [sessionId])
  return rowCount === 1
}

/** Expires the lease. */
const expireLease = (sessionId: string) =>
  db.pool.query("UPDATE sessions SET lease_until = clock_timestamp() - interval '1 second' WHERE id = $1", [sessionId])

const finish = async (owner: string, lease: Lease, number: number, shouldClaimNext = true) => {
  const [outcome] = await finishRuns(db, owner, [{ lease, number, status: 'succeeded', error: null, shouldClaimNext }])
  return outcome!
}

const acquireBySweep = () => acquireWaitingSessions(db, runner('b'))
const useUpAttempts = (startId: string) =>
  db.pool.query("UPDATE starts SET attempts = 5, status = 'running', started_at = now() WHERE id = $1", [startId])

const suspend = (isSuspended: boolean) =>
  db.prisma.organization.update({ where: { id: acme.organizationId }, data: { isSuspended } })

const note = (text: string) => ({ kind: 'note' as const, data: { code: 'test', text } })

describe('acquiring sessions by their ids', () => {
  test('leases the session and claims its first start, with all that the run needs', async () => {
    const { startId, sessionId } = await start(db, acme)
    const acquired = await acquire('a', sessionId)
    expect(acquired).toEqual({
      lease: { sessionId, epoch: expect.any(Number) },
      organizationId: acme.organizationId,
      exhaustedRunId: null,
      run: {
        id: startId,
        organizationId: acme.organizationId,
        sessionId,
        number: 1,
        workflow: {
          id: acme.workflowId,
          name: 'Forward orders',
          description: 'Post the order to Order intake',
          rulesFileId: null,
          rulesLikeFiles: null,
          model: null,
        },
        inputMessage: 'New order',
        acceptedAt: expect.any(String),
        claimedAt: expect.any(String),
        context: 'order_id: A-1',
        requestId: 'request-1',
        trace: null,
        attempts: 1,
        isFirst: true,
        waitedMs: expect.any(Number),
      },
      sources: [],
    })
    expect(await showRun(db, startId)).toMatchObject({ status: 'running', attempts: 1, started_at: expect.any(Date) })
    expect(await showSession(db, sessionId)).toMatchObject({ lease: { owner: 'a' }, starts: 1, finished: 0 })
    expect(await leaseSeconds(sessionId)).toBe(60)
  })

  test('leases a session whose start was cancelled while it was queued, and does not claim that', async () => {
    const { startId, sessionId } = await start(db, acme)
    await db.pool.query("UPDATE starts SET status = 'cancelled', finished_at = now() WHERE id = $1", [startId])
    expect(await acquire('a', sessionId)).toMatchObject({ run: null, exhaustedRunId: null })
    expect(await showRun(db, startId)).toMatchObject({ status: 'cancelled', attempts: 0 })
  })

  test.each(BOTH_WAYS)('reads the webhook sources of each organization with them: %s', async (_how, take) => {
    const other = await createStartable(db)
    const source = async ({ organizationId }: Startable, name: string, deletedAt: Date | null = null) => {
      const exampleRequestBody = { name }
      const fields = { id: newId(), name, description: `About ${name}` }
      const key = { nameKey: name, endpointUrl: 'https://acme.example', signingSecret: Buffer.from('secret') }
      await db.prisma.webhookSource.create({
        data: { ...fields, ...key, organizationId, exampleRequestBody, deletedAt },
      })
      return { ...fields, exampleRequestBody }
    }
    const [b, a, z] = [await source(acme, 'b'), await source(acme, 'a'), await source(other, 'z')]
    await source(acme, 'deleted', new Date())
    const ids = [...(await startMany(2)), ...(await startMany(1, other))]
    const { sessions } = await take(runner('a'), ids)
    const sourcesOf = (id: string | undefined) => sessions.find(({ lease }) => lease.sessionId === id)?.sources
    expect(ids.map(sourcesOf)).toEqual([[a, b], [a, b], [z]])
  })

  test.each([
    ['many sources', 21, 10],
    ['a large example', 1, 16_385],
    ['a large example that compresses well', 1, 200_000, 'x'],
    ['large examples together', 10, 1_700],
  ])('reads no webhook sources of an organization with %s', async (_what, count, exampleLength, letter = '') => {
    const other = await createStartable(db)
    const text = letter ? letter.repeat(exampleLength) : randomBytes(exampleLength / 2).toString('hex')
    await db.pool.query(
      `INSERT INTO webhook_sources (id, organization_id, name, name_key, description, endpoint_url, example_request_body)
       SELECT gen_random_uuid(), $1, n, n, '', 'https://acme.example', json_build_object('text', $3::text)
       FROM generate_series(1, $2::integer) AS n`,
      [acme.organizationId, count, text],
    )
    const ids = [(await start(db, acme)).sessionId, (await start(db, other)).sessionId]
    const { sessions } = await acquireSessions(db, runner('a'), ids)
    const sourcesOf = (id: string | undefined) => sessions.find(({ lease }) => lease.sessionId === id)?.sources
    expect(ids.map(sourcesOf)).toEqual([null, []])
    const small = await listSmallSources(db, [acme.organizationId, other.organizationId])
    expect(small).toEqual(new Map([[other.organizationId, []]]))
    const names = await listSourceNames(db, acme.organizationId)
    expect(names).toHaveLength(count)
    const wanted = names.toReversed().slice(0, 5)
    const wantedIds = wanted.map(({ id }) => id)
    const read = await readSources(db, acme.organizationId, wantedIds)
    expect(read.map(({ id, name }) => ({ id, name }))).toEqual(wanted)
    expect(await readSources(db, other.organizationId, [names[0]!.id])).toEqual([])
  })

  test('skips sessions that are leased, have no work, or do not exist', async () => {
    const { sessionId } = await start(db, acme)
    const idle = newId()
    await openSession(db, idle, operatorOf(acme.organizationId))
    await acquireSessions(db, runner('a'), [sessionId])
    const none = { sessions: [], isMore: false }
    expect(await acquireSessions(db, runner('b'), [sessionId, idle, newId()])).toEqual(none)
    expect((await acquireSessions(db, runner('a'), [sessionId])).sessions).toEqual([])
  })

  test('acquires a session whose lease expired under the next epoch, and continues its run as another attempt', async () => {
    const { sessionId, startId } = await start(db, acme)
    await acquireSessions(db, runner('a'), [sessionId])
    await expireLease(sessionId)
    const acquired = await acquire('b', sessionId)
    expect(acquired).toMatchObject({ run: { id: startId, attempts: 2, isFirst: false } })
  })

  test('has a later epoch also when the clock of PostgreSQL was set back', async () => {
    const { sessionId } = await start(db, acme)
    const epoch = 8e15
    await db.pool.query('UPDATE sessions SET lease_epoch = $2 WHERE id = $1', [sessionId, epoch])
    expect(await acquire('a', sessionId)).toMatchObject({ lease: { epoch: epoch + 1 } })
  })

  test('never has an epoch again: PostgreSQL may lose the last leases when it crashes', async () => {
    const { sessionId, startId } = await start(db, acme)
    const lost = await acquire('a', sessionId)
    const lose = 'UPDATE sessions SET lease_owner = NULL, lease_until = NULL, lease_epoch = 0 WHERE id = $1'
    await db.pool.query(lose, [sessionId])
    const again = await acquire('a', sessionId)
    const append = { runId: startId, position: 0, steps: [serializeStep(note('late'))] }
    expect(await appendSteps(db, 'a', [{ ...append, lease: lost!.lease }])).toEqual([false])
    expect(await appendSteps(db, 'a', [{ ...append, lease: again!.lease }])).toEqual([true])
  })
})

describe('a run without an attempt left', () => {
  test.each([
    ['by its id', (id: string) => acquireSessions(db, runner('b'), [id])],
    [
      'by its id, among more than there are slots',
      (id: string) => acquireSessions(db, runner('b', { slots: 1 }), [id, newId()]),
    ],
    ['in the sweep', acquireBySweep],
  ])('fails when its session is acquired %s, and the session continues with its next start', async (_how, take) => {
    const { startId, sessionId } = await start(db, acme)
    const next = await start(db, acme, sessionId)
    await useUpAttempts(startId)
    const { sessions } = await take(sessionId)
    expect(sessions).toMatchObject([{ lease: { sessionId }, run: null, exhaustedRunId: startId }])
    expect(await showRun(db, startId)).toMatchObject({
      status: 'failed',
      attempts: 5,
      error: 'too_many_attempts: The run was started 5 times, and its runner died each time',
      finished_at: expect.any(Date),
    })
    expect(await listWrongEnds(db)).toEqual([])
    expect(await showSession(db, sessionId)).toMatchObject({ finished: 1, lease: { owner: 'b' } })
    expect(await isWaiting(sessionId)).toBe(true)
    const run = { id: next.startId, number: 2, attempts: 1, isFirst: true }
    expect(await claimNextRun(db, 'b', sessions[0]!.lease)).toMatchObject({ kind: 'run', run })
  })

  test('leaves its session idle when it has no other start', async () => {
    const { startId, sessionId } = await start(db, acme)
    const other = await start(db, acme)
    await useUpAttempts(startId)
    const { sessions } = await acquireSessions(db, runner('b'), [sessionId, other.sessionId])
    expect(sessions.find(({ lease }) => lease.sessionId === other.sessionId)?.run).toMatchObject({ id: other.startId })
    const exhausted = sessions.find(({ exhaustedRunId }) => exhaustedRunId === startId)!
    expect(await claimNextRun(db, 'b', exhausted.lease)).toEqual({ kind: 'idle' })
    expect(await isWaiting(sessionId)).toBe(false)
    await releaseSessions(db, 'b', [exhausted.lease])
    expect((await acquireBySweep()).sessions).toEqual([])
    expect(await measureBacklog(db)).toEqual({ sessions: 0, oldestWaitMs: null })
  })
})

describe('a suspended organization', () => {
  test('gets no session acquired, does not count as waiting, and continues when it is resumed', async () => {
    const { sessionId } = await start(db, acme)
    const other = await createStartable(db)
    const { sessionId: otherId } = await start(db, other)
    await suspend(true)
    expect(await measureBacklog(db)).toMatchObject({ sessions: 1 })
    for (const offered of [[sessionId], [sessionId, newId()]]) {
      expect(await acquireSessions(db, runner('a', { slots: 1 }), offered)).toEqual({ sessions: [], isMore: false })
    }
    const swept = await acquireWaitingSessions(db, runner('a', { slots: 1 }))
    expect(swept.sessions.map(({ lease }) => lease.sessionId)).toEqual([otherId])
    expect(swept.isMore).toBe(false)
    await suspend(false)
    expect((await acquireWaitingSessions(db, runner('a'))).sessions).toMatchObject([{ lease: { sessionId } }])
  })

  test('gets its session released, and no further start claimed, when a run ends', async () => {
    const { sessionId } = await start(db, acme)
    const next = await start(db, acme, sessionId)
    const { sessions } = await acquireSessions(db, runner('a'), [sessionId])
    await suspend(true)
    expect(await finish('a', sessions[0]!.lease, 1)).toEqual({ kind: 'finished', next: null, isReleased: true })
    expect(await showRun(db, next.startId)).toMatchObject({ status: 'queued', attempts: 0 })
    await suspend(false)
    const { sessions: resumed } = await acquireWaitingSessions(db, runner('a'))
    expect(resumed).toMatchObject([{ run: { id: next.startId, attempts: 1 } }])
  })
})

describe('slots and shares', () => {
  test('acquires no more sessions than slots, and no more of one organization than its share', async () => {
    const other = await createStartable(db)
    const ids = [...(await startMany(6)), ...(await startMany(2, other))]
    const leased = new Map([[acme.organizationId, 1]])
    const limited = runner('a', { slots: 4, maxPerOrganization: 3, leasedByOrganization: leased })
    const { sessions: acquired } = await acquireSessions(db, limited, ids)
    const count = ({ organizationId }: Startable) =>
      acquired.filter((session) => session.organizationId === organizationId).length
    expect([count(acme), count(other)]).toEqual([2, 2])
  })

  test.each([
    ['as many as there are slots', 2, { slots: 2 }, 0, false],
    ['one more than there are slots', 3, { slots: 2 }, 0, true],
    ['as many as the share leaves', 2, { maxPerOrganization: 3 }, 1, false],
    ['one more than the share leaves', 3, { maxPerOrganization: 3 }, 1, true],
  ])('acquires two sessions of %s, and says whether there are more', async (_what, count, options, leased, isMore) => {
    const mine = runner('a', { ...options, leasedByOrganization: new Map([[acme.organizationId, leased]]) })
    for (const [, take] of BOTH_WAYS) {
      const ids = await startMany(count)
      const result = await take(mine, ids)
      expect([result.sessions.length, result.isMore]).toEqual([2, isMore])
      await db.pool.query('DELETE FROM sessions')
    }
  })

  test.each(BOTH_WAYS)(
    'leases each session once when many runners acquire them %s, and leaves none',
    async (_how, take) => {
      const ids = [...(await startMany(20)), ...(await startMany(10, await createStartable(db)))]
      const found: string[] = []
      // A row that another runner is acquiring is skipped, so one round may not find all.
      for (let round = 0; round < 20 && found.length < ids.length; round++) {
        const runners = Array.from({ length: 8 }, (_, n) => runner(`r${n}`, { slots: 5 }))
        const taken = await Promise.all(runners.map((each) => take(each, ids)))
        for (const { sessions } of taken) found.push(...sessions.map(({ lease }) => lease.sessionId))
      }
      expect(found.toSorted()).toEqual(ids.toSorted())
    },
  )
})

describe('the sweep', () => {
  test('finds every session with work and no live lease', async () => {
    const waiting = await start(db, acme)
    const leased = await start(db, acme)
    const abandoned = await start(db, acme)
    await acquireSessions(db, runner('a'), [leased.sessionId, abandoned.sessionId])
    await expireLease(abandoned.sessionId)
    const { sessions: acquired } = await acquireWaitingSessions(db, runner('b'))
    expect(acquired.map(({ lease }) => lease.sessionId).toSorted()).toEqual(
      [waiting.sessionId, abandoned.sessionId].toSorted(),
    )
    expect((await acquireWaitingSessions(db, runner('c'))).sessions).toEqual([])
  })

  test('acquires from organizations in turn, from the one with the fewest sessions first, and the longest waiting session of each', async () => {
    const other = await createStartable(db)
    const third = await createStartable(db)
    const mine = await startMany(5)
    const theirs = await start(db, other)
    await start(db, third)
    const leased = new Map([[third.organizationId, 1]])
    const limited = runner('a', { slots: 2, leasedByOrganization: leased })
    const { sessions: acquired } = await acquireWaitingSessions(db, limited)
    expect(acquired.map(({ lease }) => lease.sessionId).toSorted()).toEqual([mine[0]!, theirs.sessionId].toSorted())
  })

  test('continues where the last sweep stopped when there are more organizations than it visits', async () => {
    await db.pool.query(`
      INSERT INTO organizations (id, name) SELECT md5(n::text)::uuid, 'o' || n FROM generate_series(1, 1100) n`)
    await db.pool.query(`
      INSERT INTO sessions (id, organization_id, last_start_number, waiting_since)
      SELECT md5('s' || n)::uuid, md5(n::text)::uuid, 1, now() FROM generate_series(1, 1100) n`)
    let from: string | undefined
    const found: number[] = []
    for (let sweep = 0; sweep < 4; sweep++) {
      const { sessions: acquired, next } = await acquireWaitingSessions(db, runner('a', { slots: 10_000 }), from)
      found.push(acquired.length)
      from = next
    }
    // Each begins with the last organization of the one before, which may have more sessions.
    expect(found).toEqual([500, 499, 101, 0])
  })
})

describe('leases', () => {
  test.each([
    ['does not wait for the disk', 'off', async () => {}],
    ['waits for the disk when a run has failed', 'on', useUpAttempts],
  ])('the commit of an acquisition %s, and those after it do', async (_how, expected, prepare) => {
    const { sessionId, startId } = await start(db, acme)
    await prepare(startId)
    using client = await beginTransaction(db.pool)
    const synchronousCommit = async () => (await client.query('SHOW synchronous_commit')).rows[0].synchronous_commit
    await acquireSessions({ pool: client as unknown as Database['pool'] }, runner('b'), [sessionId])
    expect(await synchronousCommit()).toBe(expected)
    await client.query('COMMIT')
    expect(await synchronousCommit()).toBe('on')
  })

  test.each(BOTH_WAYS)('acquiring sessions %s waits for no locked row: the others are leased', async (_how, take) => {
    const [locked, free] = await startMany(2)
    using client = await beginTransaction(db.pool)
    await client.query('SELECT FROM sessions WHERE id = $1 FOR UPDATE', [locked])
    expect((await take(runner('b'), [locked!, free!])).sessions).toMatchObject([{ lease: { sessionId: free } }])
  })

  test('renewing waits for no locked row: the other leases are renewed, and that one is known as owned', async () => {
    const [locked, free] = [await start(db, acme), await start(db, acme)]
    const { sessions } = await acquireSessions(db, runner('a'), [locked.sessionId, free.sessionId])
    await expireLease(locked.sessionId)
    await expireLease(free.sessionId)
    using client = await beginTransaction(db.pool)
    await client.query('SELECT FROM sessions WHERE id = $1 FOR UPDATE', [locked.sessionId])
    const leases = sessions.map(({ lease }) => lease)
    const own = await renewLeases(db, 'a', 60_000, leases)
    const renewed = Object.fromEntries(own.map(({ sessionId, isRenewed }) => [sessionId, isRenewed]))
    expect(renewed).toEqual({ [locked.sessionId]: false, [free.sessionId]: true })
    expect(await leaseSeconds(free.sessionId)).toBe(60)
    expect((await acquireSessions(db, runner('b'), [free.sessionId])).sessions).toEqual([])
  })

  test('a session released in the middle of a run can be acquired at once, and the interruption is no attempt', async () => {
    const { sessionId, startId } = await start(db, acme)
    const acquired = await acquire('a', sessionId)
    await releaseSessions(db, 'a', [acquired!.lease])
    expect(await showRun(db, startId)).toMatchObject({ status: 'queued', attempts: 0 })
    const again = await acquire('b', sessionId)
    expect(again).toMatchObject({ run: { attempts: 1, isFirst: false } })
  })

  test('a parked session is acquired neither by a message nor by the sweep, until its time has come', async () => {
    const { sessionId, startId } = await start(db, acme)
    const other = await start(db, acme)
    const acquired = await acquire('a', sessionId)
    await releaseSessions(db, 'a', [{ ...acquired!.lease, parkedMs: 60_000 }])
    await start(db, acme, sessionId)
    expect(await showRun(db, startId)).toMatchObject({ status: 'queued', attempts: 0 })
    expect((await acquireSessions(db, runner('b'), [sessionId])).sessions).toEqual([])
    expect((await acquireSessions(db, runner('b', { slots: 0 }), [sessionId])).isMore).toBe(false)
    expect(await measureBacklog(db)).toMatchObject({ sessions: 1 })
    const swept = await acquireWaitingSessions(db, runner('b'))
    expect(swept.sessions.map(({ lease }) => lease.sessionId)).toEqual([other.sessionId])

    await db.pool.query(`UPDATE sessions SET waiting_since = now() WHERE id = $1`, [sessionId])
    const { sessions } = await acquireWaitingSessions(db, runner('b'))
    expect(sessions).toMatchObject([{ lease: { sessionId }, run: { id: startId, attempts: 1, isFirst: false } }])
  })
})

describe('finishRuns', () => {
  test('claims the next start in number order, and releases the session after the last', async () => {
    const first = await start(db, acme)
    const second = await start(db, acme, first.sessionId)
    const acquired = await acquire('a', first.sessionId)
    const outcome = await finish('a', acquired!.lease, 1)
    expect(outcome).toMatchObject({ kind: 'finished', isReleased: false, next: { id: second.startId, number: 2 } })
    expect(await showRun(db, first.startId)).toMatchObject({ status: 'succeeded', finished_at: expect.any(Date) })
    expect(await finish('a', acquired!.lease, 2)).toEqual({ kind: 'finished', isReleased: true, next: null })
    expect(await showSession(db, first.sessionId)).toMatchObject({ lease: null, starts: 2, finished: 2 })
  })

  test('a start that waited for its session begins after the run before it ended, also by its times', async () => {
    const first = await start(db, acme)
    const second = await start(db, acme, first.sessionId)
    const { lease } = (await acquire('a', first.sessionId))!
    using client = await beginTransaction(db.pool)
    await client.query('SELECT FROM sessions WHERE id = $1 FOR UPDATE', [first.sessionId])
    const claimed = claimNextRun(db, 'a', lease)
    await untilLocked(db.pool, 'claimed_at')
    await client.query('UPDATE starts SET finished_at = clock_timestamp() WHERE id = $1', [first.startId])
    await client.query('UPDATE sessions SET last_finished_number = 1 WHERE id = $1', [first.sessionId])
    await client.query('COMMIT')
    expect(await claimed).toMatchObject({ kind: 'run', run: { id: second.startId, isFirst: true } })
    const { rows } = await db.pool.query(
      `SELECT next.started_at > first.finished_at AS follows FROM starts AS first, starts AS next
       WHERE first.id = $1 AND next.id = $2`,
      [first.startId, second.startId],
    )
    expect(rows).toEqual([{ follows: true }])
  })

  test('a start recorded while the session is released is found by the owner or by the next acquisition', async () => {
    const { sessionId } = await start(db, acme)
    for (let number = 1; number <= 40; number++) {
      const acquired = await acquire('a', sessionId)
      const [outcome] = await Promise.all([finish('a', acquired!.lease, number), start(db, acme, sessionId)])
      expect(outcome.kind).toBe('finished')
      if (outcome.kind === 'finished' && !outcome.isReleased) {
        const next = outcome.next ? 'run' : (await claimNextRun(db, 'a', acquired!.lease)).kind
        if (next !== 'run') throw new Error(`start ${number + 1} is lost: ${next}`)
        await releaseSessions(db, 'a', [acquired!.lease])
      }
    }
    expect((await acquireSessions(db, runner('a'), [sessionId])).sessions).toHaveLength(1)
  })

  test('releases the session although it has more work when the runner stops', async () => {
    const { sessionId } = await start(db, acme)
    const next = await start(db, acme, sessionId)
    const acquired = await acquire('a', sessionId)
    expect(await finish('a', acquired!.lease, 1, false)).toEqual({ kind: 'finished', isReleased: true, next: null })
    expect((await acquireSessions(db, runner('b'), [sessionId])).sessions).toMatchObject([
      { run: { id: next.startId } },
    ])
  })

  test('writes once when a run is finished twice', async () => {
    const { sessionId } = await start(db, acme)
    const next = await start(db, acme, sessionId)
    const acquired = await acquire('a', sessionId)
    await finish('a', acquired!.lease, 1)
    expect(await finish('a', acquired!.lease, 1)).toEqual({ kind: 'lease_lost' })
    expect(await claimNextRun(db, 'a', acquired!.lease)).toMatchObject({ kind: 'run', run: { id: next.startId } })
  })

  test('a start that was deleted with its workflow is skipped', async () => {
    const doomed = await start(db, acme)
    const { organizationId, apiKeyId } = acme
    const other = await createStartable(db)
    await db.pool.query('UPDATE workflows SET organization_id = $1 WHERE id = $2', [organizationId, other.workflowId])
    const kept = await start(db, { organizationId, apiKeyId, workflowId: other.workflowId }, doomed.sessionId)
    await db.pool.query('DELETE FROM workflows WHERE id = $1', [acme.workflowId])
    const acquired = await acquire('a', doomed.sessionId)
    expect(acquired?.run).toBeNull()
    const next = await claimNextRun(db, 'a', acquired!.lease)
    expect(next).toMatchObject({ kind: 'run', run: { id: kept.startId, number: 2 } })
  })
})

test('appending the same steps again after a lost answer changes nothing', async () => {
  const { sessionId, startId } = await start(db, acme)
  const acquired = await acquire('a', sessionId)
  const append = { lease: acquired!.lease, runId: startId, position: 0, steps: [serializeStep(note('once'))] }
  await appendSteps(db, 'a', [append])
  expect(await appendSteps(db, 'a', [append])).toEqual([true])
  expect(await readSteps(db, startId)).toHaveLength(1)
})

test('the backlog counts the sessions that wait and how long the longest has waited', async () => {
  expect(await measureBacklog(db)).toEqual({ sessions: 0, oldestWaitMs: null })
  const old = await start(db, acme)
  await start(db, acme)
  const leased = await start(db, acme)
  await acquireSessions(db, runner('a'), [leased.sessionId])
  await db.pool.query("UPDATE sessions SET waiting_since = now() - interval '1 minute' WHERE id = $1", [old.sessionId])
  const backlog = await measureBacklog(db)
  expect(backlog.sessions).toBe(2)
  expect(backlog.oldestWaitMs).toBeGreaterThanOrEqual(60_000)
})

test('a start that was accepted still runs after its session was closed', async () => {
  const { sessionId, startId } = await start(db, acme)
  await closeSession(db, { memberId: null }, sessionId, operatorOf(acme.organizationId))
  expect((await acquireSessions(db, runner('a'), [sessionId])).sessions).toMatchObject([{ run: { id: startId } }])
})
