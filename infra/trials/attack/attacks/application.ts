import { setTimeout as sleep } from 'node:timers/promises'
import { newId } from '@workflow-service/database'
import { waitUntil } from '@workflow-service/testkit'
import { seedDeliveries, seedRuns, seedTriggers, seedWorkflows } from '../../shared/seed.ts'
import { readMetric } from '../../shared/system.ts'
import { type Attack, type Attacking, holdConnections, manyFields, openSocket, toHead } from '../attack.ts'
import type { AttackedServices, AttackRequest, AttackTarget } from '../target.ts'

/** @param n Counts the requests. */
type RequestOf = (n: number) => AttackRequest

const STRANGER = { 'sec-fetch-site': 'same-origin', 'content-type': 'application/json' }
/** With it, strangers come from many networks: each request names its own. */
const BEHIND_PROXY: AttackedServices = { app: { env: { TRUST_PROXY: '1' } } }
const networkOf = (n: number): string => `198.18.${Math.floor(n / 250) % 250}.${n % 250}`
const WIDE_BODY = JSON.stringify(manyFields('f', 220_000, 1))
const DEEP_BODY = `{"email":${'[['.repeat(400_000)}`
const LARGE_TRIGGER = {
  name: 'x',
  is_active: true,
  trigger_source: { slug: 'other', name: 'Other' },
  events: [],
  filters: manyFields('filter_', 60_000, 12_345),
  input_message: '',
  subagent_sources: [],
  version: null,
}
/** 32 KiB of conditions that parse, compile and are true for no start. */
const LONG_RULES = `deliveries:\n${Array.from({ length: 50 }, (_, n) => `  - to: Endpoint\n    when: ${Array.from({ length: 17 }, (_each, part) => `context.contains("a${n} ${part}")`).join(' && ')}\n`).join('')}`

/** As long as a context may be: each condition reads all of it. */
const LONG_CONTEXT = `text: ${'y '.repeat(4_990)}`

const BURSTS: readonly Attack[] = [
  burst('app-reads', 60, 'overviews, runs and usage of 60,000 runs', async (target) => {
    await seedMuch(target)
    return (n) => ({ path: ['/app/overview', '/app/runs?limit=100', '/app/usage'][n % 3] ?? '' })
  }),
  burst('app-exports', 40, 'exports of a manifest with 3,000 workflows', async (target) => {
    await seedMuch(target)
    return () => ({ path: '/app/manifest' })
  }),
  burst('app-audit', 60, 'pages of the audit log and of the delivery log', async (target) => {
    await seedMuch(target)
    return (n) => ({ path: n % 2 === 0 ? '/app/audit-events?limit=100' : '/app/search?q=workflow' })
  }),
  burst(
    'app-files',
    80,
    'files of 1 MiB',
    (_target, workflowId) => () => saveFile(workflowId, `${newId()}.txt`, 'x'.repeat(2 ** 20)),
  ),
  burst(
    'app-rules',
    40,
    'files rules.yaml of 32 KiB',
    (_target, workflowId) => () => saveFile(workflowId, 'rules.yaml', LONG_RULES),
  ),
  burst('app-rules-reads', 60, 'workflows with a rules.yaml of 32 KiB', async (target, workflowId) => {
    await addLongRules(target, workflowId)
    return () => ({ path: `/app/workflows/${workflowId}` })
  }),
  burst('app-journals', 40, 'runs with 4 MiB of journal, and 100 payloads that wait', async (target, workflowId) => {
    const runId = await seedJournal(target, workflowId)
    return (n) => ({ path: n % 2 === 0 ? `/app/runs/${runId}` : '/app/approvals' })
  }),
  burst(
    'app-filters',
    40,
    'triggers with filters of 1 MB',
    (_target, workflowId) => () => save(`/app/workflows/${workflowId}/triggers/${newId()}`, LARGE_TRIGGER),
  ),
  burst('app-large-edits', 40, 'edits of a workflow with 1,000 triggers', async (target, workflowId) => {
    await seedTriggers(target.system, [workflowId], 1_000)
    return (n) => save(`/app/workflows/${workflowId}/active`, { is_active: n % 2 === 0 })
  }),
  burst(
    'app-saves',
    100,
    'small saves',
    () => () => post('/app/workflows', { id: newId(), name: 'Many', description: 'x', scope: 'only_me' }),
  ),
  burst('app-tarpit-saves', 250, 'saves of webhook sources whose endpoint never answers', ({ endpoint }) => {
    endpoint.answerWith('hang')
    return () =>
      save(`/app/webhook-sources/${newId()}`, {
        name: newId(),
        description: 'Takes everything.',
        endpoint_url: endpoint.url,
        signing_secret: null,
        example_request_body: { text: 'x' },
        version: null,
      })
  }),
  burst('app-resends', 250, 'payloads sent again to an endpoint that takes 3 s', async (target) => {
    const deliveryId = await seedDelivery(target)
    return () => save(`/app/deliveries/${newId()}`, { resend_of: deliveryId })
  }),
  burst(
    'app-strangers-wide',
    30,
    'bodies of 2.4 MB with 220,000 members, of people who are not signed in',
    () => () => ({ method: 'POST', path: '/app/sign-in', body: WIDE_BODY, headers: STRANGER }),
  ),
  burst(
    'app-strangers-deep',
    30,
    'bodies of 2.4 MB, nested 400,000 times, of people who are not signed in',
    () => () => ({ method: 'POST', path: '/app/sign-in', body: DEEP_BODY, headers: STRANGER }),
  ),
  burst(
    'app-sign-ins',
    100,
    'wrong passwords, each from another network',
    () => (n) => ({
      ...post('/app/sign-in', { email: `person-${n}@acme.test`, password: 'orbit-velvet-cactus-41' }),
      headers: { ...STRANGER, 'x-forwarded-for': networkOf(n) },
    }),
    BEHIND_PROXY,
  ),
]

function post(path: string, body: object): AttackRequest {
  return { method: 'POST', path, body: JSON.stringify(body) }
}

function save(path: string, body: object): AttackRequest {
  return { ...post(path, body), method: 'PUT' }
}

function saveFile(workflowId: string, name: string, content: string): AttackRequest {
  return save(`/app/workflows/${workflowId}/files/${newId()}`, { name, path: [], content, version: null })
}

/** Starts a workflow of the attacker through the API. */
function startWorkflow(workflowId: string, context: string): AttackRequest {
  return post(`/v1/workflows/${workflowId}/start`, { context })
}

/**
 * Sends `atOnce` requests at once, again and again; its control sends as many small reads at once.
 * @param prepare Inserts data, and resolves to the requests. `workflowId` is a workflow that sends to "Endpoint".
 */
function burst(
  name: string,
  atOnce: number,
  what: string,
  prepare: (target: AttackTarget, workflowId: string) => RequestOf | Promise<RequestOf>,
  services: AttackedServices = {},
): Attack {
  return {
    name,
    services,
    isOnApplication: true,
    async run(attacking) {
      const { target, attack } = attacking
      const requestOf = await prepare(target, await target.createWorkflow())
      await sendSmallReads(attacking, atOnce)
      const responses = await attack(() => target.repeat(burstOf(attacking, atOnce), requestOf))
      return `${atOnce} at once: ${what}: ${responses}`
    },
  }
}

/** So many callers, each of which sends a request per second, or when its last one is answered. */
function burstOf({ seconds }: Attacking, callers: number) {
  return { to: 'app', callers, seconds, spacingMs: 1_000 } as const
}

/** The control of attacks that send so many requests at once. */
async function sendSmallReads(attacking: Attacking, atOnce: number): Promise<void> {
  const { target, sendOrdinary } = attacking
  await sendOrdinary(() => target.repeat(burstOf(attacking, atOnce), () => ({ path: '/app/me' })))
}

/** Connections that ask for a response and do not read it; the control sends as many small reads at once. */
function unread(
  name: string,
  what: string,
  { atOnce, path, prepare }: { atOnce: number; path: string; prepare?: (target: AttackTarget) => Promise<void> },
): Attack {
  return {
    name,
    isOnApplication: true,
    async run(attacking) {
      const { target, seconds, attack } = attacking
      await prepare?.(target)
      await sendSmallReads(attacking, atOnce)
      const { url } = target.services.app
      const headers = Object.entries(target.appHeaders).map(([header, value]) => `${header}: ${value}`)
      const head = toHead(`GET ${path} HTTP/1.1`, `Host: ${new URL(url).host}`, ...headers)
      await attack(() => holdConnections(url, { count: atOnce, seconds, reads: false }, () => head))
      return `${atOnce} connections that do not read ${what}`
    },
  }
}

/** Bodies of strangers that do not arrive, on connections that stay open, 26 from each of 20 networks. */
const HELD_BODIES = 20 * 26

const heldBodies: Attack = {
  name: 'app-held-bodies',
  services: BEHIND_PROXY,
  isOnApplication: true,
  async run({ target, seconds, sendOrdinary, attack }) {
    const { url } = target.services.app
    const hold = async (...lines: string[]): Promise<void> => {
      const headOf = (n: number) =>
        toHead(...lines, `Host: ${new URL(url).host}`, `X-Forwarded-For: ${networkOf(n % 20)}`)
      await holdConnections(url, { count: HELD_BODIES, seconds }, headOf)
    }
    await sendOrdinary(() => hold('GET /app/setup HTTP/1.1'))
    const body = ['Content-Type: application/json', 'Content-Length: 1000']
    await attack(() => hold('POST /app/sign-in HTTP/1.1', 'Sec-Fetch-Site: same-origin', ...body))
    return `${HELD_BODIES} bodies that never arrive, from 20 networks`
  },
}

/** At least; 2 s of them are few samples of the victim's latency. */
const CUT_BODIES = 5_000

/**
 * Bodies that never arrive in full: each connection is closed, by FIN or by RST, after one byte. The control opens
 * connections at the same rate, each for a read: with connections that are kept alive, it would not have what the
 * connections alone cost, which is half of the attack's CPU time.
 */
function cutBodies(
  name: string,
  service: 'app' | 'gateway',
  linesOf: (target: AttackTarget) => Readonly<Record<'cut' | 'read', readonly string[]>>,
): Attack {
  return {
    name,
    services: BEHIND_PROXY,
    isOnApplication: service === 'app',
    async run({ target, seconds, expect, sendOrdinary, attack }) {
      const attacked = target.services[service]
      const { url } = attacked
      const { cut, read } = linesOf(target)
      const open = async (lines: readonly string[], body = ''): Promise<number> => {
        const endsMs = performance.now() + seconds * 1_000
        let opened = 0
        for (; opened < CUT_BODIES || performance.now() < endsMs; opened += 250) {
          const sockets = Array.from({ length: 250 }, (_, n) => {
            const head = toHead(...lines, `Host: ${new URL(url).host}`, `X-Forwarded-For: ${networkOf(n)}`)
            return openSocket(url, head + body)
          })
          await sleep(100)
          for (const socket of sockets.splice(0, 125)) socket.end()
          for (const socket of sockets) socket.resetAndDestroy()
        }
        return opened
      }
      await sendOrdinary(() => open(read))
      const opened = await attack(() => open([...cut, 'Content-Type: application/json', 'Content-Length: 1000'], '{'))
      const areFree = async () => (await readMetric(attacked, 'http_request_slots_in_use', 'stage="reading"')) === 0
      // Longer than the time-out of a body: the last connections may end with it.
      const freed = await waitUntil(areFree, { timeoutMs: 20_000 }).catch(() => false)
      expect(freed, 'Slots are in use after the attack.')
      return `${opened} bodies that end after one byte`
    },
  }
}

/** The control starts as often through the API: the victim's starts wait for a machine that is busy with runs. */
const appStarts: Attack = {
  name: 'app-starts',
  isOnApplication: true,
  async run(attacking) {
    const { target, sendOrdinary, attack } = attacking
    await target.saveSource('Endpoint')
    const workflowId = await target.createWorkflow()
    const load = burstOf(attacking, 60)
    await sendOrdinary(() => target.repeat({ ...load, to: 'gateway' }, () => startWorkflow(workflowId, 'text: y')))
    const responses = await attack(() =>
      target.repeat(load, () =>
        post(`/app/workflows/${workflowId}/start`, { id: newId(), context: 'text: y', session_id: null }),
      ),
    )
    return `60 at once: starts of a workflow in the application: ${responses}`
  },
}

/** As many starts as 40 callers get answered, of a workflow whose rules are as long as they may be. */
const costlyRules: Attack = {
  name: 'costly-rules',
  async run({ target, seconds, sendOrdinary, attack }) {
    const [ruledId, workflowId] = [await target.createWorkflow(), await target.createWorkflow()]
    await addLongRules(target, ruledId)
    const start = async (id: string): Promise<string> =>
      await target.repeat({ to: 'gateway', callers: 40, seconds }, () => startWorkflow(id, LONG_CONTEXT))
    await sendOrdinary(() => start(workflowId))
    return `starts with 32 KiB of rules: ${await attack(() => start(ruledId))}`
  },
}

/** Attacks on the application, by one organization or by strangers, and others of section E on the API. */
export const APPLICATION_ATTACKS: readonly Attack[] = [
  ...BURSTS,
  appStarts,
  unread('app-unread-exports', 'a manifest', { atOnce: 200, path: '/app/manifest', prepare: seedMuch }),
  unread('app-event-streams', 'their events', { atOnce: 300, path: '/app/events' }),
  heldBodies,
  // By strangers, to the application, and with a key, to the API.
  cutBodies('app-cut-bodies', 'app', () => ({
    cut: ['POST /app/sign-in HTTP/1.1', 'Sec-Fetch-Site: same-origin'],
    read: ['GET /app/setup HTTP/1.1'],
  })),
  cutBodies('cut-bodies', 'gateway', ({ headers }) => ({
    cut: ['POST /v1/workflows/x/start HTTP/1.1', `Authorization: ${headers['authorization']}`],
    read: ['GET /v1/organization HTTP/1.1', `Authorization: ${headers['authorization']}`],
  })),
  costlyRules,
]

/** Gives a workflow rules as long as they may be, and the webhook source that they name. */
async function addLongRules(target: AttackTarget, workflowId: string): Promise<void> {
  await target.saveSource('Endpoint')
  await target.send('app', saveFile(workflowId, 'rules.yaml', LONG_RULES))
}

/** The SQL of an object with so many random hashes, for each `n`: without `n` in it, all rows would have the same. */
function randomText(length: string): string {
  return `json_build_object('text', (SELECT string_agg(md5(random()::text), '') FROM generate_series(1, ${length}) WHERE n >= 0))`
}

/** A run with as much of a journal as a page shows, and payloads of it that wait. Resolves to its id. */
async function seedJournal({ system, attacker }: AttackTarget, workflowId: string): Promise<string> {
  await seedRuns(system, { ...attacker, workflowId }, 10)
  const { rows } = await system.pool.query<{ id: string }>(
    `WITH run AS (SELECT id FROM starts WHERE organization_id = $1 ORDER BY created_at DESC LIMIT 1),
     unfinished AS (UPDATE starts SET status = 'waiting', finished_at = NULL WHERE id IN (SELECT id FROM run)),
     steps AS (
       INSERT INTO run_steps (run_id, position, kind, epoch, data)
       SELECT id, n, 'model_answer', 1, ${randomText('CASE WHEN n < 32 THEN 2000 ELSE 120 END')}
       FROM run, generate_series(0, 499) AS n
     )
     INSERT INTO approvals (delivery_id, organization_id, run_id, source_id, source_name, request_body, expires_at)
     SELECT gen_random_uuid(), $1, id, gen_random_uuid(), 'Endpoint', ${randomText('500')}, now() + interval '1 hour'
     FROM run, generate_series(1, 100) AS n RETURNING run_id AS id`,
    [attacker.organizationId],
  )
  return rows[0]!.id
}

async function seedMuch({ system, attacker, createWorkflow, saveSource }: AttackTarget): Promise<void> {
  await seedWorkflows(system, attacker, 3_000, { detailed: 2 })
  await seedRuns(system, { ...attacker, workflowId: await createWorkflow() }, 60_000)
  const { sourceId } = await saveSource('Endpoint', undefined, false)
  await seedDeliveries(system, { ...attacker, sourceId }, 30_000)
}

/** A delivery to an endpoint that takes 3 s. Resolves to its id. */
async function seedDelivery({ system, attacker, endpoint, saveSource }: AttackTarget): Promise<string> {
  const { sourceId } = await saveSource('Endpoint')
  await seedDeliveries(system, { ...attacker, sourceId }, 1)
  const { rows } = await system.pool.query<{ id: string }>(
    `UPDATE deliveries SET request_body = '{"text":"y"}' WHERE source_id = $1 AND kind = 'payload' RETURNING id`,
    [sourceId],
  )
  endpoint.answerWith({ status: 204, delayMs: 3_000 })
  return rows[0]!.id
}
