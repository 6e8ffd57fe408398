import { beforeAll, describe, expect, test } from '@jest/globals'
import { type Database, newId, type NewStart, recordStart, recordStarts, workflowSearchText } from '../src/index.ts'
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
  test('judges a workflow by the same rules, whether or not the start names a session or a key', async () => {
    const judged = {
      missing: 'workflow_not_found',
      foreign: 'workflow_not_found',
      inactive: 'workflow_inactive',
      paused: 'no_active_api_trigger',
      closed: 'no_users_with_access',
      company_wide: 'accepted',
      listed: 'accepted',
    } as const
    const ids = Object.fromEntries(Object.keys(judged).map((name) => [name, newId()])) as Record<
      keyof typeof judged,
      string
    >
    const foreignId = newId()
    await db.pool.query(`INSERT INTO organizations (id, name) VALUES ($1, 'Other')`, [foreignId])
    const addWorkflow = async (
      name: keyof typeof judged,
      columns: { owner?: string; scope?: string; isActive?: boolean },
    ) => {
      const { owner = organizationId, scope = 'company_wide', isActive = true } = columns
      await db.pool.query(
        `INSERT INTO workflows (id, organization_id, name, description, scope, search_text, is_active)
         VALUES ($1, $2, 'w', '', $3, $4, $5)`,
        [ids[name], owner, scope, workflowSearchText('w', ''), isActive],
      )
      await db.pool.query(
        `INSERT INTO triggers (id, workflow_id, is_active, source_slug, source_name)
         VALUES (gen_random_uuid(), $1, $2, 'api', 'API')`,
        [ids[name], name !== 'paused'],
      )
    }
    await addWorkflow('foreign', { owner: foreignId })
    await addWorkflow('inactive', { isActive: false })
    await addWorkflow('paused', {})
    await addWorkflow('closed', { scope: 'only_me' })
    await addWorkflow('company_wide', {})
    await addWorkflow('listed', { scope: 'only_me' })
    await db.pool.query(
      `INSERT INTO workflow_users (organization_id, workflow_id, user_id)
       SELECT organization_id, $2, id FROM users WHERE organization_id = $1 LIMIT 1`,
      [organizationId, ids.listed],
    )
    const outcomesOf = async (change: (name: string) => Partial<NewStart>) => {
      const starts = Object.entries(ids).map(([name, id]) => start({ workflowId: id, ...change(name) }))
      const outcomes = await recordStarts(
        db,
        starts.map((each) => ({ organizationId, start: each })),
      )
      return Object.fromEntries(Object.keys(ids).map((name, index) => [name, outcomes[index]?.kind]))
    }
    expect(await outcomesOf(() => ({}))).toEqual(judged)
    expect(await outcomesOf(() => ({ sessionId }))).toEqual(judged)
    expect(await outcomesOf((key) => ({ idempotency: { key: `judged ${key}`, requestSha256: hash(1) } }))).toEqual(
      judged,
    )
  })

  test('a start in a new session is the same row, whether or not others of its batch name a session or a key', async () => {
    const [alone, among] = [start(), start()]
    await recordStarts(db, [{ organizationId, start: alone }])
    await recordStarts(db, [
      { organizationId, start: among },
      { organizationId, start: start({ idempotency: { key: 'among', requestSha256: hash(1) } }) },
    ])
    const rowsOf = async ({ startId, newSessionId }: NewStart) => {
      const { rows } = await db.pool.query<Record<string, unknown>>(
        `SELECT to_jsonb(s) - '{id,session_id,created_at}'::text[] AS start,
                to_jsonb(session) - '{id,created_at,waiting_since,last_used_at}'::text[] AS session,
                session.waiting_since IS NOT NULL AS is_waiting
         FROM starts s JOIN sessions session ON session.id = s.session_id
         WHERE s.id = $1 AND s.session_id = $2`,
        [startId, newSessionId],
      )
      return rows
    }
    expect(await rowsOf(alone)).toHaveLength(1)
    expect(await rowsOf(alone)).toEqual(await rowsOf(among))
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
