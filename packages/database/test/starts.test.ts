import { beforeAll, describe, expect, test } from '@jest/globals'
import { type Database, newId, type NewStart, recordStart, recordStarts } from '../src/index.ts'
import { newStart, useStartable } from './support/start-fixtures.ts'

const acme = useStartable()
let db: Database
let organizationId: string
const sessionId = newId()

beforeAll(async () => {
  ;({ db, organizationId } = acme)
  await db.pool.query('INSERT INTO sessions (id, organization_id) VALUES ($1, $2)', [sessionId, organizationId])
})

const start = (change: Partial<NewStart> = {}): NewStart => newStart(acme, change)
const hash = (byte: number): Buffer => Buffer.alloc(32, byte)

describe('recordStart', () => {
  test('writes nothing when the start is refused', async () => {
    const counts = async () => {
      const { rows } = await db.pool.query(
        `SELECT (SELECT count(*) FROM starts) AS starts, (SELECT count(*) FROM sessions) AS sessions,
                (SELECT count(*) FROM idempotency_keys) AS keys`,
      )
      return rows[0] as unknown
    }
    const before = await counts()
    const idempotency = { key: 'refused', requestSha256: hash(1) }
    expect(await recordStart(db, organizationId, start({ workflowId: newId(), idempotency }))).toEqual({
      kind: 'workflow_not_found',
    })
    expect(await recordStart(db, organizationId, start({ sessionId: newId(), idempotency }))).toEqual({
      kind: 'session_not_found',
    })
    expect(await counts()).toEqual(before)
  })

  test('records since when a session has been waiting, and keeps that time when more starts follow', async () => {
    const waiting = async (): Promise<Date | null> => {
      const { rows } = await db.pool.query<{ waiting_since: Date | null }>(
        'SELECT waiting_since FROM sessions WHERE id = $1',
        [sessionId],
      )
      return rows[0]!.waiting_since
    }
    expect(await waiting()).toBeNull()
    await recordStart(db, organizationId, start({ sessionId }))
    const since = await waiting()
    expect(since).toBeInstanceOf(Date)
    await recordStart(db, organizationId, start({ sessionId }))
    expect(await waiting()).toEqual(since)
  })

  test('rolls everything back when a constraint refuses one part', async () => {
    const taken = start()
    await recordStart(db, organizationId, taken)
    const again = start({ startId: taken.startId })
    await expect(recordStart(db, organizationId, again)).rejects.toMatchObject({ code: '23505' })
    const { rowCount } = await db.pool.query('SELECT FROM sessions WHERE id = $1', [again.newSessionId])
    expect(rowCount).toBe(0)
  })
})

describe('recordStarts', () => {
  test('resolves to one outcome for each start, in order', async () => {
    const outcomes = await recordStarts(db, [
      { organizationId, start: start() },
      { organizationId: newId(), start: start() },
      { organizationId, start: start({ sessionId: newId() }) },
      { organizationId, start: start({ idempotency: { key: 'a', requestSha256: hash(1) } }) },
      { organizationId, start: start({ idempotency: { key: 'b', requestSha256: hash(1) } }) },
    ])
    expect(outcomes.map(({ kind }) => kind)).toEqual([
      'accepted',
      'workflow_not_found',
      'session_not_found',
      'accepted',
      'accepted',
    ])
    expect(await recordStarts(db, [])).toEqual([])
  })

  test('does not wait for a session that another transaction has locked, and reports that', async () => {
    const client = await db.pool.connect()
    await client.query('BEGIN')
    await client.query('SELECT FROM sessions WHERE id = $1 FOR UPDATE', [sessionId])
    const outcomes = await recordStarts(db, [
      { organizationId, start: start({ sessionId }) },
      { organizationId, start: start() },
    ])
    expect(outcomes.map(({ kind }) => kind)).toEqual(['session_locked', 'accepted'])
    await client.query('ROLLBACK')
    client.release()
  })

  test('batches with the same sessions and keys in different orders do not deadlock', async () => {
    const sessions = Array.from({ length: 8 }, () => newId())
    await db.pool.query('INSERT INTO sessions (id, organization_id) SELECT unnest($1::uuid[]), $2', [
      sessions,
      organizationId,
    ])
    const batch = (turn: number) =>
      recordStarts(
        db,
        sessions
          .map((session, index) =>
            start({ sessionId: session, idempotency: { key: `circle ${index}`, requestSha256: hash(turn) } }),
          )
          .toSorted(() => (turn % 2 === 0 ? 1 : -1))
          .map((each) => ({ organizationId, start: each })),
      )
    const outcomes = (await Promise.all(Array.from({ length: 20 }, (_, turn) => batch(turn)))).flat()
    expect(outcomes).toHaveLength(160)
    expect(outcomes.filter(({ kind }) => kind === 'accepted').length).toBeLessThanOrEqual(8)
  })
})
