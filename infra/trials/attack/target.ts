import {
  createSignedInUser,
  type ModelAnswer,
  type ModelRequest,
  type SignedInTestUser,
  startCustomerEndpoint,
  startStubModelServer,
  waitUntil,
} from '@workflow-service/testkit'
import { apiHeadersOf, createCustomer, createOrganization, createWorkflow, saveSource } from '../shared/customers.ts'
import { percentile, tally } from '../shared/figures.ts'
import { requestOnce, startLoad } from '../shared/load.ts'
import { type RemoteLoad, startRemoteReceiver } from '../shared/remote-receiver.ts'
import {
  type Service,
  type ServiceName,
  type ServiceOptions,
  startSystem,
  type System,
  type SystemOptions,
} from '../shared/system.ts'

/** Settings and limits of the services in an attack, beside the defaults. */
export type AttackedServices = Partial<Record<ServiceName, ServiceOptions>>

export interface EndedRun {
  readonly id: string
  readonly status: string
  readonly error: string | null
}

/** A request to the gateway or the application. */
export interface AttackRequest {
  readonly method?: 'GET' | 'POST' | 'PUT'
  readonly path: string
  readonly body?: string
  /** Default: those of the attacker. */
  readonly headers?: Readonly<Record<string, string>>
}

/** How many callers repeat requests. */
export interface AttackLoad {
  readonly to: 'gateway' | 'app'
  readonly callers: number
  readonly seconds: number
  /** The shortest time between the beginnings of two requests of a caller. Default 0. */
  readonly spacingMs?: number
}

/** The services, the victim, and the organization that attacks. */
export type AttackTarget = Awaited<ReturnType<typeof startAttackTarget>>

/** Starts the services with a victim and an attacker. */
export async function startAttackTarget(options: AttackedServices = {}, systemOptions?: SystemOptions) {
  await using stack = new AsyncDisposableStack()
  const endpoint = stack.adopt(await startCustomerEndpoint(), (server) => server.close())
  let answerAttacker: ((request: ModelRequest) => ModelAnswer) | undefined
  const model = stack.adopt(
    await startStubModelServer({
      otherwise: (request) => answerVictim(request) ?? answerAttacker?.(request) ?? endRun,
    }),
    (server) => server.close(),
  )
  const system = stack.use(await startSystem(systemOptions))
  const runnerEnv = { AGENT_BASE_URL: model.baseUrl, ...options.runner?.env }
  const services: Record<ServiceName, Service> = {
    dispatcher: await system.start('dispatcher', options.dispatcher),
    gateway: await system.start('gateway', options.gateway),
    runner: await system.start('runner', { env: runnerEnv }),
    app: await system.start('app', options.app),
  }
  const attacker = await createOrganization(system)
  const headers = apiHeadersOf(attacker)
  const appHeaders = appHeadersOf(await createSignedInUser(system.pool, attacker.organizationId))

  /** Sends a request of the attacker. */
  const send = async (to: AttackLoad['to'], { path, ...request }: AttackRequest) =>
    await requestOnce(services[to].url + path, { headers: to === 'app' ? appHeaders : headers, ...request })
  /** Waits until the runs have ended; after the time-out it resolves to those that have. */
  const waitForRuns = async (ids: readonly string[], timeoutMs = 12_000): Promise<EndedRun[]> => {
    const endsAt = performance.now() + timeoutMs
    const areAllEnded = async () => performance.now() > endsAt || (await readEnded(system, ids)).length === ids.length
    await waitUntil(areAllEnded, { timeoutMs: timeoutMs + 10_000, intervalMs: 50 })
    return await readEnded(system, ids)
  }
  /**
   * Starts a workflow so often at once, each in a new session unless one is given. Resolves to the ids of the accepted
   * starts.
   */
  const start = async (workflowId: string, context: string, count = 1, sessionId?: string): Promise<string[]> => {
    const body = JSON.stringify({ context, session_id: sessionId })
    const request = { method: 'POST', path: `/v1/workflows/${workflowId}/start`, body } as const
    const responses = await Promise.all(Array.from({ length: count }, () => send('gateway', request)))
    return responses.flatMap(({ status, text }) => (status === 202 ? (JSON.parse(text) as { id: string }).id : []))
  }
  const victim = await createVictim(system, services)
  const resources = stack.move()
  return {
    system,
    services,
    victim,
    attacker,
    /** The attacker's endpoint, in this process. */
    endpoint,
    /** Answers the attacker's runs in place of the model, if the runner's settings name an Anthropic model. */
    answerAsModel: (answer: (request: ModelRequest) => ModelAnswer) => void (answerAttacker = answer),
    /** The headers of the attacker's requests to the gateway. */
    headers,
    /** The headers of requests to the application, of an owner of the attacking organization. */
    appHeaders,
    /** Saves a webhook source of the attacker. Resolves to the status of the response, and to the source's id. */
    saveSource: async (name: string, example: object = { text: 'x' }, isVerified = true) =>
      await saveSource(system, attacker, { name, example, endpointUrl: endpoint.url, isVerified }),
    createWorkflow: async (description = 'Send it to "Endpoint".') =>
      await createWorkflow(system, attacker, description),
    send,
    /**
     * Repeats requests of the attacker. Resolves to the statuses with counts; of the application also to the reasons
     * why there was no response. @throws Error if the gateway does not answer.
     * @param onResponse Gets the text of each response.
     */
    async repeat(
      { to, ...load }: AttackLoad,
      requestOf: (n: number) => AttackRequest,
      onResponse: (text: string) => void = () => {},
    ): Promise<string> {
      const statuses: (number | string)[] = []
      const call = async (n: number): Promise<void> => {
        const { status, text } = await send(to, requestOf(n))
        statuses.push(status)
        onResponse(text)
      }
      const sent = startLoad({ ...load, call })
      await sent.done
      const failures = sent.failures()
      if (to === 'gateway' && failures.length > 0) throw new Error(tally(failures))
      return tally([...statuses, ...failures])
    },
    start,
    waitForRuns,
    /** Starts a workflow that sends to the source, so often at once. Resolves to how the runs ended, with counts. */
    async runAll(source: string, count: number, context: string, timeoutMs?: number): Promise<string> {
      const ids = await start(await createWorkflow(system, attacker, `Send it to "${source}".`), context, count)
      const runs = await waitForRuns(ids, timeoutMs)
      const ends = runs.map(({ status, error }) => error?.split(':')[0] ?? status)
      return tally([...ends, ...Array<string>(ids.length - runs.length).fill('still running')])
    },
    [Symbol.asyncDispose]: async () => await resources.disposeAsync(),
  }
}

async function readEnded({ pool }: System, ids: readonly string[]): Promise<EndedRun[]> {
  const query = `SELECT id, status, error FROM starts WHERE id = ANY ($1) AND status IN ('succeeded', 'failed')`
  return (await pool.query<EndedRun>(query, [ids])).rows
}

/** What is measured of the victim's requests. Its starts are measured until the payload has arrived. */
export const LATENCY_KINDS = ['reads', 'starts', 'appReads', 'appSaves'] as const
type LatencyKind = (typeof LATENCY_KINDS)[number]

/** What the victim noticed of a load, in ms. */
export type VictimLatency = Readonly<Record<LatencyKind, { readonly p95: number; readonly max: number }>>

/**
 * An organization that is not attacked itself, with a light, steady load from a process that the attacks do not slow
 * down: 20 reads and 10 starts per second to the gateway, 10 reads and 10 saves to the application.
 */
async function createVictim(system: System, { gateway, app }: Record<ServiceName, Service>) {
  const receiver = await startRemoteReceiver(system)
  const customer = await createCustomer(system, [''], receiver.url)
  const headers = apiHeadersOf(customer)
  const appHeaders = appHeadersOf(await createSignedInUser(system.pool, customer.organizationId))
  const { workflowId } = customer
  const active = `${app.url}/app/workflows/${workflowId}/active`
  const loads: Record<LatencyKind, RemoteLoad> = {
    reads: { url: `${gateway.url}/v1/organization`, headers, everyMs: 50 },
    starts: { url: `${gateway.url}/v1/workflows/${workflowId}/start`, headers, label: 'victim', everyMs: 100 },
    appReads: { url: `${app.url}/app/workflows`, headers: appHeaders, everyMs: 100 },
    appSaves: { url: active, method: 'PUT', headers: appHeaders, body: '{"is_active":true}', everyMs: 100 },
  }
  return {
    startLoad: async () => await receiver.start(LATENCY_KINDS.map((kind) => loads[kind])),
    /**
     * Stops the load when all its payloads have arrived, or 30 s later. Resolves to the latency of the calls that
     * succeeded, and to the errors: requests that were not answered as expected, and accepted starts whose payload
     * never arrived or arrived twice.
     */
    async stopLoad(): Promise<{ latency: VictimLatency; errors: string[] }> {
      const { calls, repeated } = await receiver.finish()
      const latencies = LATENCY_KINDS.map((kind, index) => {
        const ms = (calls[index] ?? []).flatMap((call) => (call.failure === undefined ? call.ms : []))
        return [kind, { p95: percentile(ms, 0.95), max: percentile(ms, 1) }]
      })
      return {
        latency: Object.fromEntries(latencies) as VictimLatency,
        errors: [
          ...calls.flat().flatMap(({ failure }) => failure ?? []),
          ...Array<string>(repeated).fill('A payload arrived twice.'),
        ],
      }
    },
  }
}

/** What a page of the application sends with each request. */
function appHeadersOf({ headers }: SignedInTestUser): Record<string, string> {
  return { ...headers, 'sec-fetch-site': 'same-origin', 'content-type': 'application/json' }
}

/** The model's last answer in a run. */
const endRun: ModelAnswer = { toolCalls: [{ name: 'end_run', arguments: { status: 'done', reason: 'Sent.' } }] }

/** Lets a run send the payloads to its only webhook source, all in one answer, and then end. */
export function sendAndEnd({ conversation }: ModelRequest, payloads: readonly object[]): ModelAnswer {
  if (conversation.messages.length > 1) return endRun
  const { name = '' } = conversation.tools.find((tool) => tool.name.startsWith('send_to_')) ?? {}
  return { toolCalls: payloads.map((payload) => ({ name, arguments: payload })) }
}

/** Lets the model send the context of a victim's start to its endpoint. Undefined for a run of the attacker. */
function answerVictim(request: ModelRequest): ModelAnswer | undefined {
  const text = /victim start \d+/.exec(JSON.stringify(request.body['messages']))?.[0]
  return text === undefined ? undefined : sendAndEnd(request, [{ text }])
}
