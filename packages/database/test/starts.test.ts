import { randomBytes } from 'node:crypto'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { beginTransaction } from '@workflow-service/testkit'
import {
  acquireSessions,
  appendSteps,
  type Database,
  finishRuns,
  listEarlierRuns,
  listWorkflowFiles,
  newId,
  type NewStart,
  readSessionSummary,
  readWorkflowFile,
  recordAppStart,
  recordStart,
  recordStarts,
  serializeStep,
  workflowSearchText,
} from '../src/index.ts'
import { ACQUIRE_ALL, createStartable, newStart, start, useStartable } from './support/start-fixtures.ts'

const acme = useStartable()

/** Runs the starts of a session one after the other, each with one step. */
async function runAll(sessionId: string, results: (string | null)[]): Promise<void> {
  const {
    sessions: [acquired],
  } = await acquireSessions(acme.db, ACQUIRE_ALL, [sessionId])
  const { lease } = acquired!
  let run = acquired?.run
  for (const error of results) {
    const steps = [serializeStep({ kind: 'message', data: { agent: 'test', text: `run ${run!.number}` } })]
    await appendSteps(acme.db, 'a', [{ lease, runId: run!.id, position: 0, steps }])
    const status = error === null ? 'succeeded' : 'failed'
    const [ended] = await finishRuns(acme.db, 'a', [
      { lease, number: run!.number, status, error, shouldClaimNext: true },
    ])
    run = ended?.kind === 'finished' ? ended.next : undefined
  }
}

/** A run with its one step. */
const small = (number: number) => [number, 1, false]

describe('listEarlierRuns', () => {
  test('returns the newest runs before this one, oldest first, with their journals', async () => {
    const { sessionId } = await start(acme.db, acme)
    for (let n = 0; n < 3; n++) await start(acme.db, acme, sessionId)
    await runAll(sessionId, [null, 'no: reason', null])
    const earlier = await listEarlierRuns(acme.db, acme.organizationId, { sessionId, number: 4, limit: 2 })
    expect(earlier).toMatchObject([
      { status: 'failed', error: 'no: reason', steps: [{ data: { text: 'run 2' } }] },
      { status: 'succeeded', error: null, steps: [{ data: { text: 'run 3' } }], workflowName: 'Forward orders' },
    ])
    expect(await listEarlierRuns(acme.db, acme.organizationId, { sessionId, number: 1, limit: 2 })).toEqual([])

    const runs = await acme.db.prisma.start.findMany({ where: { sessionId }, orderBy: { number: 'asc' } })
    for (const [index, text] of ['Old.', 'New.', ''].entries()) {
      const step = { runId: runs[index]!.id, position: 9, epoch: 1, kind: 'session_summary' }
      await acme.db.prisma.runStep.create({ data: { ...step, data: { turn: 0, through: 1, text } } })
    }
    const read = (number: number) => readSessionSummary(acme.db, acme.organizationId, { sessionId, number })
    expect([await read(4), await read(2), await read(1)]).toMatchObject([{ text: 'New.' }, { text: 'Old.' }, undefined])
  })

  test('reads no journal of more than 4 MiB, and none that is beyond 8 MiB in all, compressed or not', async () => {
    const { sessionId } = await start(acme.db, acme)
    for (let n = 0; n < 5; n++) await start(acme.db, acme, sessionId)
    await runAll(sessionId, [null, null, null, null, null, null])
    const list = async () => {
      const runs = await listEarlierRuns(acme.db, acme.organizationId, { sessionId, number: 7, limit: 6 })
      return runs.map(({ number, steps, isTooLarge = false }) => [number, steps.length, isTooLarge])
    }
    expect(await list()).toEqual([1, 2, 3, 4, 5, 6].map(small))
    const runs = await acme.db.prisma.start.findMany({ where: { sessionId }, orderBy: { number: 'asc' } })
    const add = async (number: number, mebibytes: number, text = 'x'.repeat(mebibytes * 1_048_576)) => {
      await acme.db.pool.query(
        `INSERT INTO run_steps (run_id, position, kind, data, epoch)
         VALUES ($1, 9, 'note', json_build_object('code', 'large', 'text', $2::text), 1)`,
        [runs[number - 1]!.id, text],
      )
    }
    await add(5, 5)
    expect(await list()).toEqual([1, 2, 3, 4].map(small).concat([[5, 0, true], small(6)]))
    await add(6, 3)
    await add(4, 3, randomBytes((3 * 1_048_576 * 3) / 4).toString('base64'))
    await add(2, 3)
    expect(await list()).toEqual([[1, 0, true], [2, 0, true], small(3), [4, 2, false], [5, 0, true], [6, 2, false]])
  })
})

test('files are listed by folder, then by name, and read only by their own workflow', async () => {
  const other = await createStartable(acme.db)
  const create = async (path: string[], name: string) => {
    const id = newId()
    await acme.db.prisma.file.create({
      data: { id, workflowId: acme.workflowId, path, name, content: `content of ${name}` },
    })
    return id
  }
  const deep = await create(['docs', 'more'], 'a.md')
  const doc = await create(['docs'], 'b.md')
  const root = await create([], 'z.md')
  const files = await listWorkflowFiles(acme.db, acme.organizationId, acme.workflowId)
  expect(files).toEqual([
    { id: root, name: 'z.md', path: [] },
    { id: doc, name: 'b.md', path: ['docs'] },
    { id: deep, name: 'a.md', path: ['docs', 'more'] },
  ])
  expect(await readWorkflowFile(acme.db, acme.organizationId, acme.workflowId, doc)).toBe('content of b.md')
  expect(await readWorkflowFile(acme.db, acme.organizationId, other.workflowId, doc)).toBeUndefined()
  expect(await readWorkflowFile(acme.db, other.organizationId, acme.workflowId, doc)).toBeUndefined()
})

let db: Database
let organizationId: string
const sessionId = newId()

beforeAll(async () => {
  ;({ db, organizationId } = acme)
  await db.pool.query('INSERT INTO sessions (id, organization_id) VALUES ($1, $2)', [sessionId, organizationId])
})

const toStart = (change: Partial<NewStart> = {}): NewStart => newStart(acme, change)
const hash = (byte: number): Buffer => Buffer.alloc(32, byte)
const record = async (...starts: NewStart[]) =>
  await recordStarts(
    db,
    starts.map((each) => ({ organizationId, start: each })),
  )

describe('recordStart', () => {
  test('writes nothing when the start is refused', async () => {
    const counts = `SELECT (SELECT count(*) FROM starts) AS starts, (SELECT count(*) FROM sessions) AS sessions,
                (SELECT count(*) FROM idempotency_keys) AS keys`
    const { rows: before } = await db.pool.query(counts)
    const idempotency = { key: 'refused', requestSha256: hash(1) }
    for (const [change, kind] of [
      [{ workflowId: newId() }, 'workflow_not_found'],
      [{ sessionId: newId() }, 'session_not_found'],
    ] as const)
      expect(await recordStart(db, organizationId, toStart({ ...change, idempotency }))).toEqual({ kind })
    expect((await db.pool.query(counts)).rows).toEqual(before)
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
    await recordStart(db, organizationId, toStart({ sessionId }))
    const since = await waiting()
    expect(since).toBeInstanceOf(Date)
    await recordStart(db, organizationId, toStart({ sessionId }))
    expect(await waiting()).toEqual(since)
  })

  test.each([
    ['the API', (id: string) => recordStart(db, organizationId, toStart({ sessionId: id }))],
    [
      'the application',
      (id: string) => {
        const principal = { organizationId, userId: null, name: 'operator', address: null }
        const edit = { principal, requestId: 'r', workflowId: acme.workflowId }
        return recordAppStart(db, { ...edit, runId: newId(), sessionId: id, context: 'go' })
      },
    ],
  ])(
    'through %s keeps the wait of a session without work for the payload of a cancelled run',
    async (_of, recordIn) => {
      const data = { id: newId(), organizationId, waitingSince: new Date(Date.now() + 30_000) }
      await db.prisma.session.create({ data })
      expect(await recordIn(data.id)).toMatchObject({ kind: 'accepted' })
      const session = await db.prisma.session.findUniqueOrThrow({ where: { id: data.id } })
      expect(session).toMatchObject({ lastStartNumber: 1n, waitingSince: data.waitingSince })
    },
  )

  test('rolls everything back when a constraint refuses one part', async () => {
    const taken = toStart()
    await recordStart(db, organizationId, taken)
    const again = toStart({ startId: taken.startId })
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
      deleted: 'workflow_not_found',
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
    await addWorkflow('deleted', { isActive: false })
    await db.pool.query('UPDATE workflows SET deleted_at = now() WHERE id = $1', [ids.deleted])
    await addWorkflow('inactive', { isActive: false })
    await addWorkflow('paused', {})
    await addWorkflow('closed', { scope: 'only_me' })
    await addWorkflow('company_wide', {})
    await addWorkflow('listed', { scope: 'only_me' })
    await db.pool.query(
      `INSERT INTO workflow_users (organization_id, workflow_id, user_id)
       SELECT organization_id, $2, id FROM users WHERE organization_id = $1 LIMIT 1`,
      [organizationId, ids['listed']],
    )
    const outcomesOf = async (change: (name: string) => Partial<NewStart>) => {
      const outcomes = await record(
        ...Object.entries(ids).map(([name, id]) => toStart({ workflowId: id, ...change(name) })),
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
    const [alone, among] = [toStart(), toStart()]
    await record(alone)
    await record(among, toStart({ idempotency: { key: 'among', requestSha256: hash(1) } }))
    const find = `SELECT to_jsonb(s) - '{id,session_id,created_at}'::text[] AS start,
                to_jsonb(session) - '{id,created_at,waiting_since,last_used_at}'::text[] AS session,
                session.waiting_since IS NOT NULL AS is_waiting
         FROM starts s JOIN sessions session ON session.id = s.session_id
         WHERE s.id = $1 AND s.session_id = $2`
    const { rows } = await db.pool.query(find, [alone.startId, alone.newSessionId])
    expect(rows).toHaveLength(1)
    expect((await db.pool.query(find, [among.startId, among.newSessionId])).rows).toEqual(rows)
  })

  test('does not wait for a session that another transaction has locked, and reports that', async () => {
    using client = await beginTransaction(db.pool)
    await client.query('SELECT FROM sessions WHERE id = $1 FOR UPDATE', [sessionId])
    const outcomes = await record(toStart({ sessionId }), toStart())
    expect(outcomes.map(({ kind }) => kind)).toEqual(['session_locked', 'accepted'])
  })

  test('batches with the same sessions and keys in different orders do not deadlock', async () => {
    const sessions = Array.from({ length: 8 }, () => newId())
    await db.pool.query('INSERT INTO sessions (id, organization_id) SELECT unnest($1::uuid[]), $2', [
      sessions,
      organizationId,
    ])
    const batch = (turn: number) => {
      const starts = sessions.map((session, index) =>
        toStart({ sessionId: session, idempotency: { key: `circle ${index}`, requestSha256: hash(turn) } }),
      )
      return record(...(turn % 2 === 0 ? starts : starts.toReversed()))
    }
    const outcomes = (await Promise.all(Array.from({ length: 20 }, (_, turn) => batch(turn)))).flat()
    expect(outcomes).toHaveLength(160)
    expect(outcomes.filter(({ kind }) => kind === 'accepted').length).toBeLessThanOrEqual(8)
  })
})
