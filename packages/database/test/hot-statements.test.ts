import * as storage from '../src/index.ts'
import { rowIds, testReads } from './support/count-reads.ts'
import { newClaim, newStart } from './support/start-fixtures.ts'

/** Rows of each table. */
const ROWS = 4_000
/** Items of each call. */
const BATCH = 10
/** The most rows of one table that a call may read: far less than the table has. */
const MAX_READ = 200

const TABLES = [
  'api_keys',
  'audit_events',
  'deliveries',
  'files',
  'idempotency_keys',
  'run_steps',
  'sessions',
  'starts',
  'trigger_events',
  'triggers',
  'users',
  'webhook_sources',
  'workflow_users',
  'workflows',
]

const { id, sqlId } = rowIds(TABLES)
const organizationId = storage.newId()
const sourceId = id('webhook_sources', 1)

const batch = <Item>(toItem: (n: number) => Item): Item[] => Array.from({ length: BATCH }, (_, n) => toItem(n + 1))
/** Odd sessions are leased, even ones wait. */
const leases = batch((n) => ({ sessionId: id('sessions', 2 * n + 1), epoch: 1 }))
const waiting = batch((n) => id('sessions', 2 * n + 2))
const lookUps = batch((n) => ({ organizationId, workflowId: id('workflows', n) }))
const options = { owner: 'a', leaseMs: 60_000, maxPerOrganization: 1_000, leasedByOrganization: new Map() }
const result = { status: 200, reason: null, mismatches: null, duration_ms: 1, answer: null }
const starts = (change: (n: number) => object = () => ({})) =>
  batch((n) => ({
    organizationId,
    start: { ...newStart({ workflowId: id('workflows', n), apiKeyId: id('api_keys', 1) }), ...change(n) },
  }))

const inSessions = starts((n) => ({
  sessionId: id('sessions', n),
  idempotency: { key: `key-${n}`, requestSha256: Buffer.alloc(32) },
}))
const ended = { number: 1, status: 'succeeded', error: null, shouldClaimNext: true } as const
const parked = leases.map((lease) => ({ ...lease, parkedMs: 60_000 }))
const ends = leases.map((lease) => ({ lease, ...ended }))
const claims = leases.map((lease) => newClaim(organizationId, sourceId, { lease }))
/** The runs of the leases, with the journal to which a delivery of each adds its steps. */
const journals = leases.map((lease, n) => ({ runId: id('starts', 2 * n + 3), lease, position: 900, lastOfRun: 1 }))
const claimsWithSteps = journals.map(({ runId, lease, ...journal }) => {
  const withSteps = { ...journal, runId, lease, steps: [{ kind: 'note', data: '{}' }] }
  return newClaim(organizationId, sourceId, { runId, lease, journal: withSteps })
})
const outcomes = batch((n) => ({
  organizationId,
  id: id('deliveries', n),
  result: { ...result, outcome: 'accepted' as const },
}))
const runOutcomes = outcomes.map((outcome, n) => ({
  ...outcome,
  journal: { ...journals[n]!, steps: [], result: '{}' },
}))
const steps = [storage.serializeStep({ kind: 'note', data: { code: 'test', text: 'a step' } })]
const appends = journals.map(({ runId, lease }) => ({ runId, lease, position: 1, steps }))

type Pooled = Pick<storage.Database, 'pool'>
const hotCalls: Record<string, (on: Pooled) => Promise<unknown>> = {
  findPrincipals: (on) => storage.findPrincipals(on, ['wfk_00000001', 'wfk_00000002']),
  touchApiKeys: (on) => storage.touchApiKeys(on, new Map(batch((n) => [id('api_keys', n), 5]))),
  findWorkflows: (on) => storage.findWorkflows(on, lookUps),
  findWorkflowVersions: (on) => storage.findWorkflowVersions(on, lookUps),
  listWorkflows: (on) =>
    storage.listWorkflows(
      on,
      { organizationId, memberId: null },
      { limit: 25, after: { createdAt: new Date('2026-01-01'), id: storage.newId() } },
    ),
  'recordStarts in new sessions': (on) => storage.recordStarts(on, starts()),
  'recordStarts in sessions, with Idempotency-Keys': (on) => storage.recordStarts(on, inSessions),
  acquireSessions: (on) => storage.acquireSessions(on, { ...options, slots: 5 }, waiting),
  acquireWaitingSessions: (on) => storage.acquireWaitingSessions(on, { ...options, slots: BATCH }),
  renewLeases: (on) => storage.renewLeases(on, 'a', 60_000, leases),
  releaseSessions: (on) => storage.releaseSessions(on, 'a', leases),
  'releaseSessions, parked': (on) => storage.releaseSessions(on, 'a', parked),
  claimNextRun: (on) => storage.claimNextRun(on, 'a', leases[0]!),
  finishRuns: (on) => storage.finishRuns(on, 'a', ends),
  listEarlierRuns: (on) =>
    storage.listEarlierRuns(on, organizationId, { sessionId: leases[0]!.sessionId, number: 2, limit: 10 }),
  appendSteps: (on) => storage.appendSteps(on, 'a', appends),
  readSteps: (on) => storage.readSteps(on, id('starts', 1)),
  listSmallSources: (on) => storage.listSmallSources(on, [organizationId]),
  listSourceNames: (on) => storage.listSourceNames(on, organizationId),
  readSources: (on) => storage.readSources(on, organizationId, [id('webhook_sources', 1), id('webhook_sources', 2)]),
  listWebhookSources: (on) => storage.listWebhookSources(on, organizationId),
  listWorkflowFiles: (on) => storage.listWorkflowFiles(on, organizationId, id('workflows', 1)),
  readWorkflowFile: (on) => storage.readWorkflowFile(on, organizationId, id('workflows', 1), id('files', 1)),
  claimDeliveries: (on) => storage.claimDeliveries(on, claims),
  'claimDeliveries with the steps of runs': (on) => storage.claimDeliveries(on, claimsWithSteps),
  recordRunOutcomes: (on) => storage.recordRunOutcomes(on, runOutcomes),
  recordOutcomes: (on) => storage.recordOutcomes(on, outcomes),
  listDeliveries: (on) =>
    storage.listDeliveries(on, organizationId, {
      sourceId,
      limit: 25,
      after: { createdAt: new Date(), id: storage.newId() },
    }),
  'listDeliveries with an outcome': (on) =>
    storage.listDeliveries(on, organizationId, { sourceId, limit: 25, outcome: 'rejected' }),
  'listDeliveries in flight': (on) =>
    storage.listDeliveries(on, organizationId, { sourceId, limit: 25, outcome: 'in_flight' }),
  'listDeliveries of a kind': (on) =>
    storage.listDeliveries(on, organizationId, { sourceId, limit: 25, kind: 'verification' }),
  'listDeliveries of a period': (on) => {
    const since = new Date(Date.now() - 80 * 86_400_000)
    const until = new Date(since.getTime() + 40 * 86_400_000)
    return storage.listDeliveries(on, organizationId, { sourceId, limit: 25, since, until })
  },
  findDeliveryState: (on) => storage.findDeliveryState(on, id('deliveries', 1)),
  markAbandonedDeliveries: (on) => storage.markAbandonedDeliveries(on, { olderThanMs: 1_000, batchSize: BATCH }),
  deleteOldDeliveries: (on) => storage.deleteOldDeliveries(on, { olderThanDays: 90, batchSize: BATCH }),
  deleteOldRuns: (on) => storage.deleteOldRuns(on, { organizationId, olderThanDays: 1, batchSize: BATCH }),
  deleteOldJournals: (on) => storage.deleteOldJournals(on, { organizationId, olderThanDays: 1, batchSize: BATCH }),
  deleteOldSessions: (on) => storage.deleteOldSessions(on, { organizationId, olderThanDays: 1, batchSize: BATCH }),
  deleteOldAuditEvents: (on) => storage.deleteOldAuditEvents(on, { olderThanDays: 30, batchSize: BATCH }),
  deleteOldSpending: (on) => storage.deleteOldSpending(on, { olderThanDays: 400, batchSize: BATCH }),
  deleteOldIdempotencyKeys: (on) => storage.deleteOldIdempotencyKeys(on, BATCH),
  'listRuns, queued, of a session': (on) =>
    storage.listRuns(on, organizationId, { status: 'queued', sessionId: waiting[0]!, limit: 25 }),
  'cancelQueuedRuns of a session': (on) =>
    storage.cancelQueuedRuns(
      on,
      { organizationId, memberId: null },
      { kind: 'session', id: waiting[0]! },
      storage.operatorOf(organizationId),
    ),
  startDueAutoRuns: (on) => storage.startDueAutoRuns(on, { limit: BATCH, newRequestId: () => 'r' }),
}

/** Our organization has all rows, except that each of many others has a webhook source, and one has parked sessions. */
async function seed({ pool }: Pooled): Promise<void> {
  const run = (sql: string) => pool.query(sql.replaceAll(':organization', `'${organizationId}'`))
  await run(`INSERT INTO organizations (id, name) VALUES (:organization, 'Acme')`)
  await run(`INSERT INTO users (id, organization_id, email)
    SELECT ${sqlId('users')}, :organization, 'u' || n FROM generate_series(1, ${ROWS}) n`)
  await run(`INSERT INTO api_keys (id, organization_id, name, prefix, key_sha256, scopes)
    SELECT ${sqlId('api_keys')}, :organization, 'k' || n, 'wfk_' || lpad(n::text, 8, '0'), sha256(n::text::bytea), '{start}'
    FROM generate_series(1, ${ROWS}) n`)
  await run(`INSERT INTO workflows (id, organization_id, name, description, scope, search_text, is_active, created_at,
      auto_run_enabled, auto_run_frequency, auto_run_anchor_at, auto_run_next_at)
    SELECT ${sqlId('workflows')}, :organization, 'w', '', 'only_me', 'w', true,
      timestamptz '2026-01-01' + n * interval '1 second', true, 'hourly', now(),
      now() + CASE WHEN n % 400 = 0 THEN interval '-1 minute' ELSE interval '1 hour' END
    FROM generate_series(1, ${ROWS}) n`)
  await run(`INSERT INTO workflow_users SELECT :organization, id, ${sqlId('users')}
    FROM (SELECT id, row_number() OVER (ORDER BY id) AS n FROM workflows) AS numbered`)
  await run(`INSERT INTO triggers (id, workflow_id, is_active, source_slug, source_name)
    SELECT ${sqlId('triggers')}, ${sqlId('workflows')}, true, 'api', 'API' FROM generate_series(1, ${ROWS}) n`)
  await run(`INSERT INTO trigger_events (trigger_id, position, slug, name) SELECT id, 0, 'a', 'A' FROM triggers`)
  await run(`INSERT INTO files (id, workflow_id, name, content)
    SELECT ${sqlId('files')}, ${sqlId('workflows')}, 'f', 'x' FROM generate_series(1, ${ROWS}) n`)
  await run(`INSERT INTO sessions (id, organization_id, last_start_number, waiting_since, lease_owner, lease_epoch, lease_until)
    SELECT ${sqlId('sessions')}, :organization, 2, now(), CASE n % 2 WHEN 1 THEN 'a' END, 1,
      CASE n % 2 WHEN 1 THEN now() + interval '1 hour' END
    FROM generate_series(1, ${ROWS}) n`)
  await run(`INSERT INTO starts (id, organization_id, workflow_id, session_id, number, origin, context, request_id, status, attempts)
    SELECT ${sqlId('starts')}, :organization, '${id('workflows', 1)}', ${sqlId('sessions')}, 1, 'api', 'go', 'r',
      CASE n % 2 WHEN 1 THEN 'running' ELSE 'queued' END, 1
    FROM generate_series(1, ${ROWS}) n`)
  await run(`INSERT INTO starts (id, organization_id, workflow_id, session_id, number, origin, context, request_id)
    SELECT gen_random_uuid(), :organization, '${id('workflows', 1)}', ${sqlId('sessions')}, 2, 'api', 'go', 'r'
    FROM generate_series(1, ${ROWS}) n`)
  await run(`WITH ended AS (
      INSERT INTO sessions (id, organization_id, created_at, last_used_at)
      SELECT gen_random_uuid(), :organization, now() - interval '9 days', now() - interval '9 days'
      FROM generate_series(1, ${ROWS}) n RETURNING id
    )
    INSERT INTO starts (id, organization_id, workflow_id, session_id, number, origin, context, request_id, status, created_at, finished_at)
    SELECT gen_random_uuid(), :organization, '${id('workflows', 1)}', id, 1, 'api', 'go', 'r', 'succeeded',
      now() - interval '9 days', now() - interval '9 days'
    FROM ended`)
  await run(`INSERT INTO sessions (id, organization_id, created_at, last_used_at)
    SELECT gen_random_uuid(), :organization, now() - interval '20 days', now() - interval '20 days' FROM generate_series(1, ${ROWS}) n`)
  await run(`INSERT INTO audit_events (id, at, actor_kind, actor_name, action)
    SELECT (lpad(to_hex(extract(epoch FROM at)::bigint * 1000), 12, '0') || '70008' || lpad(to_hex(n), 15, '0'))::uuid, at, 'operator', 'o', 'a'
    FROM generate_series(1, ${ROWS}) n, LATERAL (SELECT now() - n * interval '1 hour' AS at) AS aged`)
  await run(`INSERT INTO run_steps (run_id, position, kind, data, epoch)
    SELECT ${sqlId('starts')}, 0, 'note', '{}', 1 FROM generate_series(1, ${ROWS}) n`)
  await run(`INSERT INTO idempotency_keys (api_key_id, key, request_sha256, start_id, session_id, created_at)
    SELECT '${id('api_keys', 1)}', 'stored-' || n, sha256(''), ${sqlId('starts')}, ${sqlId('sessions')},
      now() - interval '1 day' * (n % 2)
    FROM generate_series(1, ${ROWS}) n`)
  await run(
    `INSERT INTO organizations (id, name) SELECT ${sqlId('webhook_sources')}, 'Other' FROM generate_series(1, ${ROWS}) n`,
  )
  await run(`INSERT INTO sessions (id, organization_id, last_start_number, waiting_since)
    SELECT gen_random_uuid(), '${id('webhook_sources', 1)}', 1, now() + interval '1 hour' FROM generate_series(1, ${ROWS}) n`)
  await run(`INSERT INTO webhook_sources (id, organization_id, name, name_key, description, endpoint_url, example_request_body)
    SELECT ${sqlId('webhook_sources')}, CASE WHEN n <= 10 THEN :organization ELSE ${sqlId('webhook_sources')} END, n, n, '', 'https://x', '{}'
    FROM generate_series(1, ${ROWS}) n`)
  await run(`INSERT INTO deliveries (id, organization_id, source_id, kind, outcome, status, request_body, created_at, finished_at)
    SELECT ${sqlId('deliveries')}, :organization, '${sourceId}', CASE n % 1000 WHEN 1 THEN 'verification' ELSE 'payload' END,
      CASE WHEN n % 4 = 0 THEN 'in_flight' WHEN n % 1000 = 2 THEN 'rejected' ELSE 'accepted' END, 200, '{}',
      now() - n * interval '1 hour', CASE n % 4 WHEN 0 THEN NULL ELSE now() END
    FROM generate_series(1, ${ROWS}) n`)
}

const calls = Object.fromEntries(Object.entries(hotCalls).map(([name, call]) => [name, [MAX_READ, call] as const]))
testReads('every hot statement', TABLES, calls, seed)
