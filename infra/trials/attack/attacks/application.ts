import { setTimeout as sleep } from 'node:timers/promises'
import { newId } from '@workflow-service/database'
import { waitUntil } from '@workflow-service/testkit'
import { tally } from '../../shared/figures.ts'
import { type LoadOptions, requestOnce, startLoad } from '../../shared/load.ts'
import { seedDeliveries, seedRuns, seedTriggers, seedWorkflows } from '../../shared/seed.ts'
import { type Attack, type AttackOptions, openSocket, toHead } from '../attack.ts'
import type { AttackedServices, AttackTarget } from '../target.ts'

const ROUND_MS = 1_000

interface AppRequest {
  readonly method?: 'GET' | 'POST' | 'PUT'
  readonly path: string
  readonly body?: string
  readonly headers?: Record<string, string>
}

/** An attack that sends `atOnce` requests at once, again and again; its control sends as many small reads at once. */
interface Burst {
  readonly name: string
  readonly what: string
  readonly atOnce: number
  readonly services?: AttackedServices
  readonly prepare?: (target: AttackTarget) => Promise<void>
  /** @param n Counts the requests. */
  readonly requestOf: (target: AttackTarget, n: number) => AppRequest
}

const STRANGER = { 'sec-fetch-site': 'same-origin', 'content-type': 'application/json' }
/** With it, strangers come from many networks: each request names its own. */
const BEHIND_PROXY: AttackedServices = { app: { env: { TRUST_PROXY: '1' } } }
const networkOf = (n: number): string => `198.18.${Math.floor(n / 250) % 250}.${n % 250}`
const WIDE_BODY = JSON.stringify(Object.fromEntries(Array.from({ length: 220_000 }, (_, n) => [`f${n}`, 1])))
const DEEP_BODY = `{"email":${'[['.repeat(400_000)}`
const LARGE_TRIGGER = JSON.stringify({
  name: 'x',
  is_active: true,
  trigger_source: { slug: 'other', name: 'Other' },
  events: [],
  filters: Object.fromEntries(Array.from({ length: 60_000 }, (_, n) => [`filter_${n}`, n])),
  input_message: '',
  subagent_sources: [],
  version: null,
})
/** 32 KiB of conditions that parse, compile and are true for no start. */
const LONG_RULES = `deliveries:\n${Array.from({ length: 50 }, (_, n) => `  - to: Endpoint\n    when: ${Array.from({ length: 17 }, (_each, part) => `context.contains("a${n} ${part}")`).join(' && ')}\n`).join('')}`

/** As long as a context may be: each condition reads all of it. */
const LONG_CONTEXT = `text: ${'y '.repeat(4_990)}`

const BURSTS: readonly Attack[] = (
  [
    {
      name: 'app-reads',
      what: 'overviews, runs and usage of 60,000 runs',
      atOnce: 60,
      prepare: seedMuch,
      requestOf: (_target, n) => ({ path: ['/app/overview', '/app/runs?limit=100', '/app/usage'][n % 3] ?? '' }),
    },
    {
      name: 'app-exports',
      what: 'exports of a manifest with 3,000 workflows',
      atOnce: 40,
      prepare: seedMuch,
      requestOf: () => ({ path: '/app/manifest' }),
    },
    {
      name: 'app-audit',
      what: 'pages of the audit log and of the delivery log',
      atOnce: 60,
      prepare: seedMuch,
      requestOf: (_target, n) => ({ path: n % 2 === 0 ? '/app/audit-events?limit=100' : '/app/search?q=workflow' }),
    },
    {
      name: 'app-files',
      what: 'files of 1 MiB',
      atOnce: 80,
      requestOf: (target) => saveFile(target, `${newId()}.txt`, 'x'.repeat(2 ** 20)),
    },
    {
      name: 'app-rules',
      what: 'files rules.yaml of 32 KiB',
      atOnce: 40,
      requestOf: (target) => saveFile(target, 'rules.yaml', LONG_RULES),
    },
    {
      name: 'app-rules-reads',
      what: 'workflows with a rules.yaml of 32 KiB',
      atOnce: 60,
      prepare: async (target: AttackTarget) => {
        await target.saveSource('Endpoint', { text: 'x' })
        await sendToApp(target, saveFile(target, 'rules.yaml', LONG_RULES))
      },
      requestOf: (target) => ({ path: `/app/workflows/${workflowOf(target)}` }),
    },
    {
      name: 'app-journals',
      what: 'runs with 4 MiB of journal, and 100 payloads that wait',
      atOnce: 40,
      prepare: seedJournal,
      requestOf: (target, n) => ({ path: n % 2 === 0 ? `/app/runs/${runIds.get(target)}` : '/app/approvals' }),
    },
    {
      name: 'app-filters',
      what: 'triggers with filters of 1 MB',
      atOnce: 40,
      requestOf: (target) => ({
        method: 'PUT',
        path: `/app/workflows/${workflowOf(target)}/triggers/${newId()}`,
        body: LARGE_TRIGGER,
      }),
    },
    {
      name: 'app-large-edits',
      what: 'edits of a workflow with 1,000 triggers',
      atOnce: 40,
      prepare: async (target: AttackTarget) => await seedTriggers(target.system, [workflowOf(target)], 1_000),
      requestOf: (target, n) => save(`/app/workflows/${workflowOf(target)}/active`, { is_active: n % 2 === 0 }),
    },
    {
      name: 'app-saves',
      what: 'small saves',
      atOnce: 100,
      requestOf: () => ({
        method: 'POST',
        path: '/app/workflows',
        body: JSON.stringify({ id: newId(), name: 'Many', description: 'x', scope: 'only_me' }),
      }),
    },
    {
      name: 'app-tarpit-saves',
      what: 'saves of webhook sources whose endpoint never answers',
      atOnce: 250,
      prepare: async (target: AttackTarget) => target.endpoint.answerWith('hang'),
      requestOf: (target) =>
        save(`/app/webhook-sources/${newId()}`, {
          name: newId(),
          description: 'Takes everything.',
          endpoint_url: target.endpoint.url,
          signing_secret: null,
          example_request_body: { text: 'x' },
          version: null,
        }),
    },
    {
      name: 'app-resends',
      what: 'payloads sent again to an endpoint that takes 3 s',
      atOnce: 250,
      prepare: seedDelivery,
      requestOf: (target) => save(`/app/deliveries/${newId()}`, { resend_of: deliveryIds.get(target) }),
    },
    {
      name: 'app-strangers-wide',
      what: 'bodies of 2.4 MB with 220,000 members, of people who are not signed in',
      atOnce: 30,
      requestOf: () => ({ method: 'POST', path: '/app/sign-in', body: WIDE_BODY, headers: STRANGER }),
    },
    {
      name: 'app-strangers-deep',
      what: 'bodies of 2.4 MB, nested 400,000 times, of people who are not signed in',
      atOnce: 30,
      requestOf: () => ({ method: 'POST', path: '/app/sign-in', body: DEEP_BODY, headers: STRANGER }),
    },
    {
      name: 'app-sign-ins',
      what: 'wrong passwords, each from another network',
      atOnce: 100,
      services: BEHIND_PROXY,
      requestOf: (_target, n) => ({
        method: 'POST',
        path: '/app/sign-in',
        body: JSON.stringify({ email: `person-${n}@acme.test`, password: 'orbit-velvet-cactus-41' }),
        headers: { ...STRANGER, 'x-forwarded-for': networkOf(n) },
      }),
    },
  ] satisfies Burst[]
).map(toAttack)

function save(path: string, body: object): AppRequest {
  return { method: 'PUT', path, body: JSON.stringify(body) }
}

function saveFile(target: AttackTarget, name: string, content: string, workflowId = workflowOf(target)): AppRequest {
  const file = { name, path: [], content, version: null }
  return save(`/app/workflows/${workflowId}/files/${newId()}`, file)
}

function toAttack({ name, what, atOnce, services = {}, prepare, requestOf }: Burst): Attack {
  return {
    name,
    services,
    isOnApplication: true,
    async prepare(target) {
      workflowIds.set(target, await target.createWorkflow('Send it to "Endpoint".'))
      await prepare?.(target)
    },
    async sendOrdinary(target, options) {
      await sendRounds(target, { ...options, atOnce }, () => ({ path: '/app/me' }))
    },
    async run(target, options) {
      const statuses = await sendRounds(target, { ...options, atOnce }, (n) => requestOf(target, n))
      return `${atOnce} at once: ${what}: ${tally(statuses)}`
    },
  }
}

/**
 * So many callers, each of which sends a request per second, or when its last one is answered. Resolves to the
 * statuses.
 */
async function sendRounds(
  target: AttackTarget,
  { atOnce, seconds }: Pick<AttackOptions, 'seconds'> & { readonly atOnce: number },
  requestOf: (n: number) => AppRequest,
): Promise<(number | string)[]> {
  const statuses: (number | string)[] = []
  const load = startLoad({
    callers: atOnce,
    spacingMs: ROUND_MS,
    seconds,
    call: async (number) => statuses.push(await sendToApp(target, requestOf(number))),
  })
  await load.done
  return statuses
}

/** Resolves to the status of the response, or to the reason why there was none. */
async function sendToApp(
  { services, appHeaders }: AttackTarget,
  { path, headers = appHeaders, ...request }: AppRequest,
): Promise<number | string> {
  try {
    return (await requestOnce(services.app.url + path, { ...request, headers })).status
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? (error as Error).name
  }
}

/** Connections that ask for an answer and do not read it; the control sends as many small reads at once. */
function unread(
  name: string,
  what: string,
  { atOnce, path, prepare }: { atOnce: number; path: string; prepare?: Attack['prepare'] },
): Attack {
  return {
    name,
    isOnApplication: true,
    ...(prepare && { prepare }),
    async sendOrdinary(target, options) {
      await sendRounds(target, { ...options, atOnce }, () => ({ path: '/app/me' }))
    },
    async run(target, { seconds }) {
      const { url } = target.services.app
      const headers = Object.entries(target.appHeaders).map(([header, value]) => `${header}: ${value}`)
      const head = toHead(`GET ${path} HTTP/1.1`, `Host: ${new URL(url).host}`, ...headers)
      const sockets = Array.from({ length: atOnce }, () => openSocket(url, head).socket.pause())
      await sleep(seconds * 1_000)
      for (const socket of sockets) socket.destroy()
      return `${atOnce} connections that do not read ${what}`
    },
  }
}

const UNREAD = [
  unread('app-unread-exports', 'a manifest', { atOnce: 200, path: '/app/manifest', prepare: seedMuch }),
  unread('app-event-streams', 'their events', { atOnce: 300, path: '/app/events' }),
]

/** Bodies of strangers that do not arrive, on connections that stay open, so many from each of 20 networks. */
const HELD_BODIES = 26

const heldBodies: Attack = {
  name: 'app-held-bodies',
  services: BEHIND_PROXY,
  isOnApplication: true,
  sendOrdinary: async (target, options) => void (await holdOpen(target, options, ['GET /app/setup HTTP/1.1'])),
  async run(target, options) {
    const body = ['Content-Type: application/json', 'Content-Length: 1000']
    const lines = ['POST /app/sign-in HTTP/1.1', 'Sec-Fetch-Site: same-origin', ...body]
    return `${await holdOpen(target, options, lines)} bodies that never arrive, from 20 networks`
  },
}

async function holdOpen(
  { services }: AttackTarget,
  { seconds }: Pick<AttackOptions, 'seconds'>,
  lines: readonly string[],
): Promise<number> {
  const { url } = services.app
  const sockets = Array.from({ length: 20 * HELD_BODIES }, (_, n) => {
    const head = toHead(...lines, `Host: ${new URL(url).host}`, `X-Forwarded-For: ${networkOf(n % 20)}`)
    return openSocket(url, head).socket
  })
  await sleep(seconds * 1_000)
  for (const socket of sockets) socket.destroy()
  return sockets.length
}

/** At least; 2 s of them are few samples of the victim's latency. */
const CUT_BODIES = 5_000

/**
 * Bodies that never arrive in full: each connection is closed, by FIN or by RST, after one byte. The control opens
 * connections at the same rate, each for a read: with connections that are kept alive, it would not have what the
 * connections alone cost, which is half of the attack's CPU time.
 */
function cutBodies(name: string, service: 'app' | 'gateway', linesOf: (target: AttackTarget) => Lines): Attack {
  const open = async (target: AttackTarget, requestOf: (n: number) => string, seconds: number): Promise<number> => {
    const { url } = target.services[service]
    const endsMs = performance.now() + seconds * 1_000
    let opened = 0
    for (; opened < CUT_BODIES || performance.now() < endsMs; opened += 250) {
      const sockets = Array.from({ length: 250 }, (_, n) => openSocket(url, requestOf(n)).socket)
      await sleep(100)
      for (const socket of sockets.splice(0, 125)) socket.end()
      for (const socket of sockets) socket.resetAndDestroy()
    }
    return opened
  }
  const request = (target: AttackTarget, lines: readonly string[], body = '') => {
    const host = `Host: ${new URL(target.services[service].url).host}`
    return (n: number): string => toHead(...lines, host, `X-Forwarded-For: ${networkOf(n)}`) + body
  }
  const cut = (target: AttackTarget) =>
    request(target, [...linesOf(target).cut, 'Content-Type: application/json', 'Content-Length: 1000'], '{')
  return {
    name,
    services: BEHIND_PROXY,
    isOnApplication: service === 'app',
    sendOrdinary: async (target, { seconds }) =>
      void (await open(target, request(target, linesOf(target).read), seconds)),
    run: async (target, { seconds }) => `${await open(target, cut(target), seconds)} bodies that end after one byte`,
    async checkAfterwards(target, expect) {
      const areFree = async (): Promise<boolean> => {
        const metrics = await (await fetch(`${target.services[service].metricsUrl}/metrics`)).text()
        return /^http_request_slots_in_use\{stage="reading".*\} 0$/m.test(metrics)
      }
      // Longer than the time-out of a body: the last connections may end with it.
      const freed = waitUntil(areFree, { timeoutMs: 20_000 }).then(
        () => true,
        () => false,
      )
      expect(await freed, 'Slots are in use after the attack.')
    },
  }
}

interface Lines {
  readonly cut: readonly string[]
  readonly read: readonly string[]
}

/** By strangers, to the application, and with a key, to the API. */
const CUT = [
  cutBodies('app-cut-bodies', 'app', () => ({
    cut: ['POST /app/sign-in HTTP/1.1', 'Sec-Fetch-Site: same-origin'],
    read: ['GET /app/setup HTTP/1.1'],
  })),
  cutBodies('cut-bodies', 'gateway', ({ headers }) => ({
    cut: ['POST /v1/workflows/x/start HTTP/1.1', `Authorization: ${headers['authorization']}`],
    read: ['GET /v1/organization HTTP/1.1', `Authorization: ${headers['authorization']}`],
  })),
]

/** The control starts as often through the API: the victim's starts wait for a machine that is busy with runs. */
const appStarts: Attack = {
  ...toAttack({
    name: 'app-starts',
    what: 'starts of a workflow in the application',
    atOnce: 60,
    prepare: async (target) => void (await target.saveSource('Endpoint', { text: 'x' })),
    requestOf: (target) => ({
      method: 'POST',
      path: `/app/workflows/${workflowOf(target)}/start`,
      body: JSON.stringify({ id: newId(), context: 'text: y', session_id: null }),
    }),
  }),
  async sendOrdinary(target, { seconds }) {
    const load = { callers: 60, spacingMs: ROUND_MS, seconds }
    await sendStarts(target, load, { workflowId: workflowOf(target), context: 'text: y' })
  },
}

/** As many starts as 40 callers get answered, of a workflow whose rules are as long as they may be. */
const costlyRules: Attack = {
  name: 'costly-rules',
  async prepare(target) {
    await target.saveSource('Endpoint', { text: 'x' })
    for (const ids of [workflowIds, ruledIds]) ids.set(target, await target.createWorkflow('Send it to "Endpoint".'))
    await sendToApp(target, saveFile(target, 'rules.yaml', LONG_RULES, ruledIds.get(target)))
  },
  async sendOrdinary(target, { seconds }) {
    await sendStarts(target, { callers: 40, seconds }, { workflowId: workflowOf(target), context: LONG_CONTEXT })
  },
  async run(target, { seconds }) {
    const start = { workflowId: ruledIds.get(target) ?? '', context: LONG_CONTEXT }
    return `starts with 32 KiB of rules: ${tally(await sendStarts(target, { callers: 40, seconds }, start))}`
  },
}

/** Starts a workflow of the attacker through the API. Resolves to the statuses. */
async function sendStarts(
  { services, headers }: AttackTarget,
  load: Pick<LoadOptions<unknown>, 'callers' | 'spacingMs' | 'seconds'>,
  { workflowId, context }: { readonly workflowId: string; readonly context: string },
): Promise<number[]> {
  const statuses: number[] = []
  const url = `${services.gateway.url}/v1/workflows/${workflowId}/start`
  const start = { method: 'POST', headers, body: JSON.stringify({ context }) } as const
  await startLoad({ ...load, call: async () => statuses.push((await requestOnce(url, start)).status) }).done
  return statuses
}

/** Attacks on the application, by one organization or by strangers, and others of section E on the API. */
export const APPLICATION_ATTACKS: readonly Attack[] = [...BURSTS, appStarts, ...UNREAD, heldBodies, ...CUT, costlyRules]

const workflowIds = new WeakMap<AttackTarget, string>()
const ruledIds = new WeakMap<AttackTarget, string>()
const deliveryIds = new WeakMap<AttackTarget, string>()

function workflowOf(target: AttackTarget): string {
  return workflowIds.get(target) ?? ''
}

const runIds = new WeakMap<AttackTarget, string>()

/** A run with as much of a journal as a page shows, and payloads of it that wait. */
async function seedJournal(target: AttackTarget): Promise<void> {
  const { system, attacker } = target
  await seedRuns(system, { ...attacker, workflowId: workflowOf(target) }, 10)
  const text = `(SELECT string_agg(md5(random()::text), '') FROM generate_series(1, length))`
  const { rows } = await system.pool.query<{ id: string }>(
    `WITH run AS (SELECT id FROM starts WHERE organization_id = $1 ORDER BY created_at DESC LIMIT 1),
     unfinished AS (UPDATE starts SET status = 'waiting', finished_at = NULL WHERE id IN (SELECT id FROM run)),
     steps AS (
       INSERT INTO run_steps (run_id, position, kind, epoch, data)
       SELECT id, n, 'model_answer', 1, json_build_object('text', ${text})
       FROM run, generate_series(0, 499) AS n, LATERAL (SELECT CASE WHEN n < 32 THEN 2000 ELSE 120 END AS length) AS size
     )
     INSERT INTO approvals (delivery_id, organization_id, run_id, source_id, source_name, request_body, expires_at)
     SELECT gen_random_uuid(), $1, id, gen_random_uuid(), 'Endpoint', json_build_object('text', ${text}), now() + interval '1 hour'
     FROM run, generate_series(1, 100) AS n, LATERAL (SELECT n * 0 + 500 AS length) AS size RETURNING run_id AS id`,
    [attacker.organizationId],
  )
  runIds.set(target, rows[0]!.id)
}

async function seedMuch(target: AttackTarget): Promise<void> {
  const { system, attacker } = target
  await seedWorkflows(system, attacker, 3_000, { detailed: 2 })
  const workflowId = await target.createWorkflow('Send it to "Endpoint".')
  await seedRuns(system, { ...attacker, workflowId }, 60_000)
  const { sourceId } = await target.saveSource('Endpoint', { text: 'x' }, false)
  await seedDeliveries(system, { ...attacker, sourceId }, 30_000)
}

async function seedDelivery(target: AttackTarget): Promise<void> {
  const { system, attacker, endpoint } = target
  const { sourceId } = await target.saveSource('Endpoint', { text: 'x' })
  await seedDeliveries(system, { ...attacker, sourceId }, 1)
  const { rows } = await system.pool.query<{ id: string }>(
    `UPDATE deliveries SET request_body = '{"text":"y"}' WHERE source_id = $1 AND kind = 'payload' RETURNING id`,
    [sourceId],
  )
  deliveryIds.set(target, rows[0]!.id)
  endpoint.answerWith({ status: 204, delayMs: 3_000 })
}
