import { beforeEach, describe, expect, test } from '@jest/globals'
import { beginTransaction, untilLocked } from '@workflow-service/testkit'
import type { QueryConfig, QueryResult } from 'pg'
import {
  appendSteps,
  serializeStep,
  claimNextRun,
  countAttempt,
  createDatabase,
  type Database,
  deleteWorkflow,
  finishRuns,
  type Lease,
  newId,
  operatorOf,
  purgeDeletedWorkflows,
  recordStart,
  releaseSessions,
  renewLeases,
  acquireSessions,
} from '../src/index.ts'
import { ACQUIRE_ALL, createStartable, newStart, start, useNewStartable } from './support/start-fixtures.ts'

const acme = useNewStartable()
let db: Database
beforeEach(() => void ({ db } = acme))

interface LeasedRun {
  readonly lease: Lease
  readonly runId: string
}
type Pooled = Pick<Database, 'pool'>

const note = { kind: 'note' as const, data: { code: 'test', text: 'a step' } }

/** A write under leases, and its result when the leases are lost. */
interface Operation {
  readonly write: (on: Pooled, owner: string, leased: LeasedRun[]) => Promise<unknown>
  readonly refusal: unknown
  /** Whether it skips locked sessions instead of waiting. */
  readonly skipsLocked?: boolean
}
const leasesOf = (leased: LeasedRun[]) => leased.map(({ lease }) => lease)
const many: Record<string, Operation> = {
  'appending steps': {
    write: (on, owner, leased) => {
      const appends = leased.map((run) => ({ ...run, position: 0, steps: [serializeStep(note)] }))
      return appendSteps(on, owner, appends)
    },
    refusal: [false],
  },
  'ending runs': {
    write: (on, owner, leased) =>
      finishRuns(
        on,
        owner,
        leased.map(({ lease }) => ({ lease, number: 1, status: 'succeeded', error: null, shouldClaimNext: true })),
      ),
    refusal: [{ kind: 'lease_lost' }],
  },
  'renewing leases': {
    write: (on, owner, leased) => renewLeases(on, owner, 600_000, leasesOf(leased)),
    refusal: [],
    skipsLocked: true,
  },
  'releasing sessions': {
    write: (on, owner, leased) => releaseSessions(on, owner, leasesOf(leased)),
    refusal: undefined,
  },
}
const one: Record<string, Operation> = {
  'claiming the next run': {
    write: (on, owner, [leased]) => claimNextRun(on, owner, leased!.lease),
    refusal: { kind: 'lease_lost' },
  },
  'counting an attempt': {
    write: (on, owner, [leased]) => countAttempt(on, owner, leased!.lease),
    refusal: undefined,
  },
}
const manyKinds = Object.entries(many)
const kinds = [...manyKinds, ...Object.entries(one)]

const acquireOptions = (owner: string) => ({ ...ACQUIRE_ALL, owner })
const EXPIRE = "UPDATE sessions SET lease_until = clock_timestamp() - interval '1 second' WHERE id = $1"

/** A session with two starts, of which runner `a` executes the first. */
async function leaseRun(): Promise<LeasedRun> {
  const { sessionId, startId } = await start(db, acme)
  await start(db, acme, sessionId)
  const { sessions } = await acquireSessions(db, acquireOptions('a'), [sessionId])
  return { lease: sessions[0]!.lease, runId: startId }
}

async function acquireExpired(owner: string, sessionId: string): Promise<void> {
  await db.pool.query(EXPIRE, [sessionId])
  const { sessions } = await acquireSessions(db, acquireOptions(owner), [sessionId])
  expect(sessions).toHaveLength(1)
}

/** All rows that a runner may change. */
async function allRows(): Promise<unknown> {
  const { rows } = await db.pool.query(
    `SELECT (SELECT json_agg(row ORDER BY row.id) FROM sessions row) AS sessions,
            (SELECT json_agg(row ORDER BY row.id) FROM starts row) AS starts,
            (SELECT json_agg(row ORDER BY row.run_id, row.position) FROM run_steps row) AS steps`,
  )
  return rows[0]
}

/**
 * Begins the work while a transaction has done this to a session, and ends the transaction once the work waits for it.
 */
async function meeting<Result>(
  [sql, sessionId]: [string, string],
  work: () => Promise<Result>,
  meanwhile: () => Promise<void> = async () => {},
): Promise<Result> {
  using client = await beginTransaction(db.pool)
  await client.query(sql, [sessionId])
  const working = work()
  working.catch(() => {})
  await untilLocked(db.pool)
  await meanwhile()
  await client.query('COMMIT')
  return await working
}

/** The pool, with a callback before the statement that skips a deleted start. */
function beforeSkipping(act: () => Promise<unknown>): Pooled {
  const query = async (statement: QueryConfig): Promise<QueryResult> => {
    if (statement.name === 'skip-ended-start') await act()
    return await db.pool.query(statement)
  }
  return { pool: { query } as unknown as Database['pool'] }
}

describe.each(kinds)('%s', (_what, { write, refusal }) => {
  test('writes for the owner of the lease', async () => {
    const leased = await leaseRun()
    const before = await allRows()
    await write(db, 'a', [leased])
    expect(await allRows()).not.toEqual(before)
  })

  test.each([
    ['another runner has acquired the session', (id: string) => acquireExpired('b', id)],
    ['the same runner has acquired the session again', (id: string) => acquireExpired('a', id)],
    [
      // As it may after the database was restored from a backup.
      'another runner has a lease of the same epoch',
      (id: string) => db.pool.query("UPDATE sessions SET lease_owner = 'b' WHERE id = $1", [id]),
    ],
  ])('writes nothing once %s', async (_why, lose) => {
    const leased = await leaseRun()
    await lose(leased.lease.sessionId)
    const before = await allRows()
    expect(await write(db, 'a', [leased])).toEqual(refusal)
    expect(await allRows()).toEqual(before)
  })
})

test.each(kinds.filter(([, { skipsLocked }]) => !skipsLocked))(
  '%s waits for a concurrent acquisition, and then writes nothing',
  async (_what, { write, refusal }) => {
    const leased = await leaseRun()
    const outcome = await meeting(
      ["UPDATE sessions SET lease_epoch = lease_epoch + 1, lease_owner = 'b' WHERE id = $1", leased.lease.sessionId],
      () => write(db, 'a', [leased]),
    )
    expect(outcome).toEqual(refusal)
    expect(await allRows()).toMatchObject({
      sessions: [{ lease_owner: 'b', lease_epoch: leased.lease.epoch + 1, last_finished_number: 0 }],
      starts: [
        { id: leased.runId, status: 'running', attempts: 1 },
        { status: 'queued', attempts: 0 },
      ],
      steps: null,
    })
  },
)

test.each(manyKinds.filter(([, { skipsLocked }]) => !skipsLocked))(
  '%s locks sessions in the order of their ids, so that two batches never wait for each other',
  async (_what, { write }) => {
    const [low, high] = [await leaseRun(), await leaseRun()]
    // The update moves its row behind the other one, in the order of a table scan.
    await db.pool.query('UPDATE sessions SET is_open = true WHERE id = $1', [low.lease.sessionId])
    const scanning = new URL(acme.url)
    scanning.searchParams.set('options', '-c enable_indexscan=off -c enable_bitmapscan=off')
    const other = createDatabase({ url: scanning.href, applicationName: 'test' })
    try {
      await meeting(
        ['SELECT FROM sessions WHERE id = $1 FOR UPDATE', low.lease.sessionId],
        () => write(other, 'a', [high, low]),
        async () => {
          const lockHigh = 'SELECT FROM sessions WHERE id = $1 FOR UPDATE SKIP LOCKED'
          expect((await db.pool.query(lockHigh, [high.lease.sessionId])).rowCount).toBe(1)
        },
      )
    } finally {
      await other.close()
    }
  },
)

test('releasing several sessions parks each for its own time, and queues only its own run', async () => {
  const [parked, second, lost] = [await leaseRun(), await leaseRun(), await leaseRun()]
  const ended = { lease: second.lease, number: 1, status: 'succeeded' as const, error: null, shouldClaimNext: true }
  await finishRuns(db, 'a', [ended])
  await acquireExpired('b', lost.lease.sessionId)
  await releaseSessions(db, 'a', [{ ...parked.lease, parkedMs: 600_000 }, second.lease, lost.lease])
  const { rows } = await db.pool.query(
    `SELECT lease_owner, waiting_since BETWEEN now() + interval '9 minutes' AND now() + interval '11 minutes' AS is_parked,
       (SELECT array_agg(status ORDER BY number) FROM starts WHERE session_id = sessions.id) AS starts
     FROM sessions ORDER BY array_position($1::uuid[], id)`,
    [[parked, second, lost].map(({ lease }) => lease.sessionId)],
  )
  expect(rows).toEqual([
    { lease_owner: null, is_parked: true, starts: ['queued', 'queued'] },
    { lease_owner: null, is_parked: false, starts: ['succeeded', 'queued'] },
    { lease_owner: 'b', is_parked: false, starts: ['running', 'queued'] },
  ])
})

test('releasing does not decrement the attempts of a run that was not claimed', async () => {
  const { lease, runId } = await leaseRun()
  await db.pool.query("UPDATE starts SET status = 'queued', attempts = 0, started_at = NULL WHERE id = $1", [runId])
  await releaseSessions(db, 'a', [lease])
  expect(await allRows()).toMatchObject({
    sessions: [{ lease_owner: null }],
    starts: [{ id: runId, status: 'queued', attempts: 0 }, {}],
  })
})

describe('claiming the next run', () => {
  test.each(['b', 'a'])('skips nothing once "%s" has acquired the session meanwhile', async (owner) => {
    const { lease, runId } = await leaseRun()
    await db.pool.query('DELETE FROM starts WHERE id = $1', [runId])
    const on = beforeSkipping(() => acquireExpired(owner, lease.sessionId))
    expect(await claimNextRun(on, 'a', lease)).toEqual({ kind: 'lease_lost' })
    expect(await allRows()).toMatchObject({ sessions: [{ last_finished_number: 0 }] })
  })

  test('does not skip again what it skipped and finished meanwhile', async () => {
    const { lease, runId } = await leaseRun()
    await start(db, acme, lease.sessionId)
    await db.pool.query('DELETE FROM starts WHERE id = $1', [runId])
    // As if the answer was lost, and the statement took effect only after the retry.
    const on = beforeSkipping(async () => {
      expect(await claimNextRun(db, 'a', lease)).toMatchObject({ kind: 'run', run: { number: 2 } })
      await finishRuns(db, 'a', [{ lease, number: 2, status: 'succeeded', error: null, shouldClaimNext: true }])
    })
    expect(await claimNextRun(on, 'a', lease)).toMatchObject({ kind: 'run', run: { number: 3 } })
    expect(await allRows()).toMatchObject({ sessions: [{ last_finished_number: 2 }] })
  })

  test('finds a start that becomes visible before it would be skipped', async () => {
    const { lease, runId } = await leaseRun()
    const { rows } = await db.pool.query('DELETE FROM starts WHERE id = $1 RETURNING *', [runId])
    const on = beforeSkipping(() =>
      db.pool.query('INSERT INTO starts SELECT * FROM json_populate_record(NULL::starts, $1)', [
        JSON.stringify(rows[0]),
      ]),
    )
    expect(await claimNextRun(on, 'a', lease)).toMatchObject({ kind: 'run', run: { id: runId } })
  })

  test('skips many starts at once that were cancelled while the run before them was under way', async () => {
    const { lease } = await leaseRun()
    const { sessionId } = lease
    const cancelStarts = () =>
      db.pool.query(
        `WITH counted AS (
           UPDATE sessions SET last_start_number = last_start_number + 1500 WHERE id = $1
           RETURNING last_start_number - 1500 AS last
         )
         INSERT INTO starts (id, organization_id, workflow_id, session_id, number, origin, context, request_id, status, finished_at)
         SELECT gen_random_uuid(), organization_id, workflow_id, session_id, last + n, origin, context, request_id,
           'cancelled', now()
         FROM starts, counted, generate_series(1, 1500) AS n WHERE session_id = $1 AND number = 1`,
        [sessionId],
      )
    await cancelStarts()
    const last = await start(db, acme, sessionId)
    await cancelStarts()
    await finishRuns(db, 'a', [{ lease, number: 1, status: 'succeeded', error: null, shouldClaimNext: true }])
    await finishRuns(db, 'a', [{ lease, number: 2, status: 'succeeded', error: null, shouldClaimNext: true }])
    let statements = 0
    const query = async (statement: QueryConfig): Promise<QueryResult> => {
      statements += 1
      return await db.pool.query(statement)
    }
    const on = { pool: { query } as unknown as Database['pool'] }
    const next = await claimNextRun(on, 'a', lease)
    expect(next).toMatchObject({ kind: 'run', run: { id: last.startId, number: 1_503 } })
    await finishRuns(db, 'a', [{ lease, number: 1_503, status: 'succeeded', error: null, shouldClaimNext: true }])
    expect(await claimNextRun(on, 'a', lease)).toEqual({ kind: 'idle' })
    expect(await allRows()).toMatchObject({ sessions: [{ last_finished_number: 3_003, waiting_since: null }] })
    expect(statements).toBeLessThanOrEqual(12)
  })

  test('does not skip a start that is recorded while it waits to skip those before it', async () => {
    const { lease } = await leaseRun()
    await db.pool.query(`UPDATE starts SET status = 'cancelled', finished_at = now()`)
    using recording = await beginTransaction(db.pool)
    const on = beforeSkipping(async () => {
      await recording.query(
        `WITH counted AS (
           UPDATE sessions SET last_start_number = 3 WHERE id = $1
         )
         INSERT INTO starts (id, organization_id, workflow_id, session_id, number, origin, context, request_id)
         SELECT gen_random_uuid(), organization_id, workflow_id, session_id, 3, origin, context, request_id
         FROM starts WHERE session_id = $1 AND number = 1`,
        [lease.sessionId],
      )
      void untilLocked(db.pool).then(async () => await recording.query('COMMIT'))
    })
    expect(await claimNextRun(on, 'a', lease)).toMatchObject({ kind: 'run', run: { number: 3 } })
  })

  test('skips a start that was recorded while its workflow was deleted for good', async () => {
    const { startId, sessionId } = await start(db, await createStartable(db))
    using slow = await beginTransaction(db.pool)
    await slow.query("INSERT INTO idempotency_keys VALUES ($1, 'k', $2, $3, $4)", [
      acme.apiKeyId,
      Buffer.alloc(32),
      startId,
      sessionId,
    ])
    const idempotency = { key: 'k', requestSha256: Buffer.alloc(32, 1) }
    const recording = recordStart(db, acme.organizationId, newStart(acme, { idempotency }))
    await untilLocked(db.pool)
    const principal = { ...operatorOf(acme.organizationId).principal, userId: newId(), role: 'owner' as const }
    await deleteWorkflow(db, { workflowId: acme.workflowId, principal, requestId: 'r' })
    expect(await purgeDeletedWorkflows(db, 10)).toBe(1)
    await slow.query('ROLLBACK')
    const recorded = await recording
    if (recorded.kind !== 'accepted') throw new Error(`The start was refused: ${recorded.kind}`)

    const { sessions } = await acquireSessions(db, ACQUIRE_ALL, [recorded.sessionId])
    let statements = 0
    const query = async (statement: QueryConfig): Promise<QueryResult> => {
      if (++statements > 10) throw new Error('The start is claimed again and again')
      return await db.pool.query(statement)
    }
    const on = { pool: { query } as unknown as Database['pool'] }
    expect(await claimNextRun(on, 'a', sessions[0]!.lease)).toEqual({ kind: 'idle' })
    expect(await db.pool.query('SELECT id FROM starts')).toMatchObject({ rows: [{ id: startId }] })
  })
})
