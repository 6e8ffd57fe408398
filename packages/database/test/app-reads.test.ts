import { describe, expect, test } from '@jest/globals'
import {
  cancelQueuedRuns,
  type Database,
  decideApprovals,
  deleteWorkflow,
  findSession,
  findVisibleDelivery,
  findVisibleRun,
  findVisibleRuns,
  indexForSearch,
  listApiKeys,
  listRunsOfSession,
  listSessions,
  listSourcesWithLastRequests,
  listVisibleDeliveries,
  listVisibleRuns,
  newId,
  markAttentionDone,
  needsSearch,
  readAttention,
  readOverview,
  readUsage,
  recordOutcomes,
  rollUpUsage,
  searchEverything,
  searchVisibleRuns,
} from '../src/index.ts'
import { type CountedCall, rowIds, testReads } from './support/count-reads.ts'

/** Rows of each large table. */
const ROWS = 10_000
const TABLES = [
  'api_keys',
  'approvals',
  'deliveries',
  'run_steps',
  'search_chunks',
  'sessions',
  'starts',
  'usage_hours',
  'users',
  'webhook_sources',
  'workflow_users',
  'workflows',
]

const organizationId = newId()
const [memberId, sourceId] = [newId(), newId()]
/** The first is seen by everyone, the second by the member, the others only by admins. */
const workflowIds = Array.from({ length: 20 }, newId)
const { id, sqlId } = rowIds(TABLES)

const admin = { organizationId, memberId: null }
const member = { organizationId, memberId }
/** With many runs: of a workflow that the member sees, and of one that the member does not. */
const [longSession, hiddenSession] = [id('sessions', 1), id('sessions', 2)]
const after = { createdAt: new Date(Date.now() - 12_000_000), id: newId() }
const limit = 26
/** Of another organization, with a queue of 6,000 starts of the first workflow; two of the second have not ended. */
const queueing = { organizationId: newId(), memberId: null }
const [longQueue, shortQueue, noQueue] = [newId(), newId(), newId()]
const by = { principal: { organizationId, userId: newId(), name: 'Ada', address: null }, requestId: null }

/** Each run asked for an approval. */
const approved = { decision: 'approved', reason: null } as const
const [lastRun, lastDelivery] = [id('starts', ROWS), id('deliveries', ROWS)]

/** Of one payload, which was sent again 300 times. */
const resends = Array.from({ length: 100 }, (_, n) => id('deliveries', ROWS + 2 + n))
const accepted = (resend: string) => ({
  organizationId: queueing.organizationId,
  id: resend,
  result: { outcome: 'accepted' as const, status: 200, answer: null, reason: null, mismatches: null, duration_ms: 1 },
})

/** The calls of the application. */
const calls: Record<string, CountedCall> = {
  'runs of an admin': [100, (on) => listVisibleRuns(on, admin, { limit, after })],
  'failed runs': [100, (on) => listVisibleRuns(on, admin, { limit, status: 'failed' })],
  'failed runs of a workflow that need attention': [
    // All failed ones, of which none has this error.
    300,
    (on) => searchVisibleRuns(on, admin, { limit, needsAttention: 'nothing', workflowId: workflowIds[3] }),
  ],
  'queued runs': [100, (on) => listVisibleRuns(on, admin, { limit, status: 'queued' })],
  'whether a queue is long': [100, (on) => needsSearch(on, queueing.organizationId, { status: 'queued' })],
  'queued runs of a long queue': [100, (on) => searchVisibleRuns(on, queueing, { limit, status: 'queued' })],
  'queued runs of a workflow beside a long queue': [
    100,
    (on) => searchVisibleRuns(on, queueing, { limit, status: 'queued', workflowId: shortQueue }),
  ],
  'running runs beside a long queue': [100, (on) => listVisibleRuns(on, queueing, { limit, status: 'running' })],
  'waiting runs beside a long queue': [100, (on) => listVisibleRuns(on, queueing, { limit, status: 'waiting' })],
  'queued runs of a workflow that are cancelled': [
    7_000,
    (on) => cancelQueuedRuns(on, queueing, { kind: 'workflow', id: shortQueue }, by),
  ],
  'a workflow that is deleted': [7_000, (on) => deleteWorkflow(on, editOf(noQueue))],
  'runs of a workflow': [100, (on) => listVisibleRuns(on, admin, { limit, after, workflowId: workflowIds[3] })],
  'failed runs of a workflow': [
    100,
    (on) => listVisibleRuns(on, admin, { limit, status: 'failed', workflowId: workflowIds[3] }),
  ],
  'runs of a session': [100, (on) => listRunsOfSession(on, admin, longSession, { limit })],
  'runs of a session that a member sees': [100, (on) => listRunsOfSession(on, member, longSession, { limit })],
  'failed runs of a session': [4_700, (on) => listRunsOfSession(on, member, longSession, { limit, status: 'failed' })],
  'runs of a session that a member does not see': [
    4_700,
    (on) => listRunsOfSession(on, member, hiddenSession, { limit }),
  ],
  'runs of a member': [1_100, (on) => listVisibleRuns(on, member, { limit })],
  'runs of a workflow that a member does not see': [
    100,
    (on) => listVisibleRuns(on, member, { limit, workflowId: workflowIds[3] }),
  ],
  'a run': [100, (on) => findVisibleRun(on, member, id('starts', 20))],
  'deliveries of all sources': [300, (on) => listVisibleDeliveries(on, admin, { limit })],
  'failed deliveries of all sources': [300, (on) => listVisibleDeliveries(on, admin, { limit, outcome: 'rejected' })],
  'deliveries with a rare word': [500, (on) => listVisibleDeliveries(on, admin, { limit, search: 'nowhere' })],
  'deliveries with a frequent word': [800, (on) => listVisibleDeliveries(on, admin, { limit, search: 'amount' })],
  'runs with a rare word': [500, (on) => searchVisibleRuns(on, admin, { limit, search: 'nowhere' })],
  'runs with a frequent word': [800, (on) => searchVisibleRuns(on, admin, { limit, search: 'go' })],
  'earlier deliveries with a frequent word': [
    800,
    (on) => listVisibleDeliveries(on, admin, { limit, search: 'amount', until: new Date(Date.now() - 14_400_000) }),
  ],
  sessions: [100, (on) => listSessions(on, admin, { limit, after })],
  'closed sessions': [100, (on) => listSessions(on, admin, { limit, isOpen: false })],
  'sessions of a member': [1_700, (on) => listSessions(on, member, { limit, after })],
  'a session': [200, (on) => findSession(on, member, id('sessions', 7))],
  'a log': [100, (on) => listVisibleDeliveries(on, admin, { sourceId, limit, after })],
  'rejected deliveries': [100, (on) => listVisibleDeliveries(on, admin, { sourceId, limit, outcome: 'rejected' })],
  verifications: [100, (on) => listVisibleDeliveries(on, admin, { sourceId, limit, kind: 'verification' })],
  'a log for a member': [4_700, (on) => listVisibleDeliveries(on, member, { sourceId, limit })],
  'a delivery': [300, (on) => findVisibleDelivery(on, member, id('deliveries', 20))],
  'outcomes of resends of one payload': [2_000, (on) => recordOutcomes(on, resends.map(accepted))],
  sources: [300, (on) => listSourcesWithLastRequests(on, member)],
  keys: [100, (on) => listApiKeys(on, organizationId, { limit, after })],
  'the overview': [1_100, (on) => readOverview(on, member)],
  'the payloads of a run that are approved': [100, (on) => decideApprovals(on, { ...approved, runId: lastRun }, by)],
  'a payload that is approved': [100, (on) => decideApprovals(on, { ...approved, deliveryId: lastDelivery }, by)],
  'a payload of a run that is approved': [
    100,
    (on) => decideApprovals(on, { ...approved, runId: lastRun, deliveryId: lastDelivery }, by),
  ],
  'what needs attention': [100, (on) => readAttention(on, admin)],
  'a group that is done': [
    300,
    (on) =>
      markAttentionDone(
        on,
        admin,
        { kind: 'delivery_not_accepted', id: sourceId, code: 'rejected', status: 200, until: new Date().toISOString() },
        by,
      ),
  ],
  usage: [2_000, (on) => readUsage(on, member, { by: 'workflow' })],
  'search by name': [200, (on) => searchEverything(on, { organizationId: newId(), memberId }, 'flow 3')],
  'search by id': [100, (on) => searchEverything(on, admin, id('deliveries', 20))],
  'search by request': [300, (on) => searchEverything(on, member, newId())],
}

const editOf = (workflow: string) => ({
  workflowId: workflow,
  principal: { ...by.principal, organizationId: queueing.organizationId, role: 'owner' as const },
  requestId: newId(),
})

async function seedQueue({ pool }: Database): Promise<void> {
  const { organizationId: queue } = queueing
  await pool.query(`INSERT INTO organizations (id, name) VALUES ($1, 'Queueing')`, [queue])
  await pool.query(
    `INSERT INTO workflows (id, organization_id, name, description, scope, search_text, is_active)
     SELECT id, $1, 'w', '', 'company_wide', '', true FROM unnest($2::uuid[]) AS workflow (id)`,
    [queue, [longQueue, shortQueue, noQueue]],
  )
  const [long, queued, running] = [newId(), newId(), newId()]
  await pool.query(
    `INSERT INTO sessions (id, organization_id, last_start_number, lease_owner, waiting_since)
     SELECT id, $1, starts, owner, now() FROM unnest($2::uuid[], ARRAY[6000, 1, 1], ARRAY[NULL, NULL, 'a']) AS session (id, starts, owner)`,
    [queue, [long, queued, running]],
  )
  await pool.query(
    `INSERT INTO starts (id, organization_id, workflow_id, session_id, number, origin, context, request_id, status, created_at)
     SELECT gen_random_uuid(), $1, workflow, session, n, 'api', 'go', 'r', status, now() - age - n * interval '1 second'
     FROM unnest($2::uuid[], $3::uuid[], ARRAY[6000, 1, 1], '{queued,queued,running}'::text[], '{0,3 h,3 h}'::interval[])
       AS queue (workflow, session, starts, status, age), generate_series(1, starts) n`,
    [queue, [longQueue, shortQueue, shortQueue], [long, queued, running]],
  )
}

async function seed(db: Database): Promise<void> {
  const run = (sql: string, values: unknown[] = []) =>
    db.pool.query(sql.replaceAll(':organization', `'${organizationId}'`).replaceAll(':source', `'${sourceId}'`), values)
  await run(`INSERT INTO organizations (id, name, created_at) VALUES (:organization, 'Acme', now() - interval '1 day')`)
  await run(`INSERT INTO users (id, organization_id, email) VALUES ($1, :organization, 'member')`, [memberId])
  await run(
    `INSERT INTO workflows (id, organization_id, name, description, scope, search_text, is_active)
     SELECT id, :organization, 'workflow ' || n, '', CASE n WHEN 1 THEN 'company_wide' ELSE 'only_me' END, 'workflow ' || n, true
     FROM unnest($1::uuid[]) WITH ORDINALITY AS workflow (id, n)`,
    [workflowIds],
  )
  await run('INSERT INTO workflow_users VALUES (:organization, $1, $2)', [workflowIds[1], memberId])
  await run(`INSERT INTO webhook_sources (id, organization_id, name, name_key, description, endpoint_url, example_request_body)
    VALUES (:source, :organization, 's', 's', '', 'https://x', '{}')`)
  await run(`INSERT INTO sessions (id, organization_id, last_start_number, last_finished_number, is_open, closed_at, created_at)
    SELECT ${sqlId('sessions')}, :organization, 1, 1, n % 1000 <> 0, CASE n % 1000 WHEN 0 THEN now() END, now() - interval '2 hours' - n * interval '1 second'
    FROM generate_series(1, ${ROWS}) n`)
  await run(
    `INSERT INTO starts (id, organization_id, workflow_id, session_id, number, origin, context, request_id, status, error,
       created_at, started_at, finished_at)
     SELECT ${sqlId('starts')}, :organization, ($1::uuid[])[CASE n % 5000 WHEN 4999 THEN 2 ELSE 3 + n % 17 END],
       ${sqlId('sessions')}, 1, 'api', 'go', 'r',
       CASE n % 500 WHEN 0 THEN 'failed' ELSE 'succeeded' END, CASE n % 500 WHEN 0 THEN 'x' END,
       now() - interval '2 hours' - n * interval '1 second', now() - interval '2 hours' - n * interval '1 second', now()
     FROM generate_series(1, ${ROWS}) n`,
    [workflowIds],
  )
  await run(
    `INSERT INTO starts (id, organization_id, workflow_id, session_id, number, origin, context, request_id, status, created_at,
       started_at, finished_at)
     SELECT gen_random_uuid(), :organization, ($1::uuid[])[1 + n % 2], ($2::uuid[])[1 + n % 2], 2 + n / 2, 'api', 'go', 'r',
       'succeeded', now() - interval '7 hours' - n * interval '1 second', now(), now()
     FROM generate_series(0, ${2 * ROWS - 1}) n`,
    [
      [workflowIds[1], workflowIds[3]],
      [longSession, hiddenSession],
    ],
  )
  await run(`INSERT INTO run_steps (run_id, position, kind, data, epoch)
    SELECT ${sqlId('starts')}, 0, 'note', '{}', 1 FROM generate_series(1, ${ROWS}) n`)
  await run(`INSERT INTO approvals (delivery_id, organization_id, run_id, source_id, source_name, request_body, status, expires_at,
      decided_at)
    SELECT ${sqlId('deliveries')}, :organization, ${sqlId('starts')}, :source, 's', '{}', 'approved', now(), now()
    FROM generate_series(1, ${ROWS}) n`)
  await run(`INSERT INTO deliveries (id, organization_id, source_id, kind, outcome, status, request_body, run_id, created_at, finished_at)
    SELECT ${sqlId('deliveries')}, :organization, :source, CASE n % 2000 WHEN 0 THEN 'verification' ELSE 'payload' END,
      CASE n % 300 WHEN 0 THEN 'rejected' ELSE 'accepted' END, 200, '{"amount":1}', ${sqlId('starts')}, now() - interval '2 hours' - n * interval '1 second', now()
    FROM generate_series(1, ${ROWS}) n`)
  await run(`INSERT INTO api_keys (id, organization_id, name, prefix, key_sha256, scopes, created_at)
    SELECT ${sqlId('api_keys')}, :organization, 'k' || n, 'wfk_' || lpad(n::text, 8, '0'), sha256(n::text::bytea), '{start}',
      now() - interval '2 hours' - n * interval '1 second'
    FROM generate_series(1, ${ROWS}) n`)
  await seedQueue(db)
  await seedResends(db)
  await rollUpUsage(db)
  await indexForSearch(db)
}

async function seedResends({ pool }: Database): Promise<void> {
  await pool.query(
    `INSERT INTO deliveries (id, organization_id, source_id, kind, outcome, request_body, resend_of)
     SELECT ${sqlId('deliveries')}, $1, gen_random_uuid(), 'payload', 'unknown', '{}', CASE WHEN n > $2 THEN $3::uuid END
     FROM generate_series($2::int, $2 + 300) n`,
    [queueing.organizationId, ROWS + 1, id('deliveries', ROWS + 1)],
  )
}

const database = testReads('every read of the application', TABLES, calls, seed)

describe('beside a long queue', () => {
  test('queued runs of all workflows are listed newest first, those of one are complete, as are running ones', async () => {
    const { db } = database
    expect(await needsSearch(db, queueing.organizationId, { status: 'queued' })).toBe(true)
    expect(await needsSearch(db, organizationId, { status: 'queued' })).toBe(false)
    const queued = async (query: object) => {
      const { rows } = await searchVisibleRuns(db, queueing, { limit: 2, status: 'queued', ...query })
      return await findVisibleRuns(db, queueing, rows)
    }
    expect((await queued({})).map(({ number }) => number)).toEqual([1, 2])
    expect((await queued({ workflowId: shortQueue })).map(({ workflow }) => workflow.id)).toEqual([shortQueue])
    const running = await listVisibleRuns(db, queueing, { limit: 9, status: 'running' })
    expect(running.map(({ status, workflow }) => [status, workflow.id])).toEqual([['running', shortQueue]])
  })

  test('a workflow is deleted only without runs that have not ended, and only its queued runs are cancelled', async () => {
    const { db } = database
    const queue = { kind: 'workflow', id: shortQueue } as const
    await expect(deleteWorkflow(db, editOf(longQueue))).rejects.toMatchObject({ problem: 'workflow_busy' })
    expect(await cancelQueuedRuns(db, queueing, queue, by)).toEqual({ cancelled: 1, isMore: false })
    await expect(deleteWorkflow(db, editOf(shortQueue))).rejects.toMatchObject({ problem: 'workflow_busy' })
    await deleteWorkflow(db, editOf(noQueue))
  })

  test('a workflow of a very long queue is deleted after its queued runs were cancelled', async () => {
    const { db } = database
    await db.pool.query('UPDATE sessions SET last_start_number = 20000 WHERE last_start_number = 6000')
    await expect(deleteWorkflow(db, editOf(longQueue))).rejects.toMatchObject({ problem: 'workflow_busy' })
    const queue = { kind: 'workflow', id: longQueue } as const
    expect(await cancelQueuedRuns(db, queueing, queue, by)).toEqual({ cancelled: 6_000, isMore: false })
    await deleteWorkflow(db, editOf(longQueue))
  })
})
