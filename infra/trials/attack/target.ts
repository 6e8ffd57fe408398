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
import { tally } from '../shared/figures.ts'
import { requestOnce } from '../shared/load.ts'
import { type RemoteLoad, startRemoteReceiver } from '../shared/receiver.ts'
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

/** A request of the attacker's run to the model. */
export interface ModelQuestion {
  /** The tool that sends to the attacker's only webhook source. */
  readonly sendTool: string
  /** Whether the model has not called a tool yet. */
  readonly isFirst: boolean
}

/** The services, the victim, and the organization that attacks. */
export type AttackTarget = Awaited<ReturnType<typeof startAttackTarget>>

/** Starts the services with a victim and an attacker. */
export async function startAttackTarget(options: AttackedServices = {}, systemOptions?: SystemOptions) {
  const system = await startSystem(systemOptions)
  const endpoint = await startCustomerEndpoint()
  let answerAttacker: ((question: ModelQuestion) => ModelAnswer) | undefined
  const model = await startStubModelServer({
    otherwise: (request) => answerVictim(request) ?? answerAttacker?.(toQuestion(request)) ?? endRun,
  })
  const close = async (): Promise<void> => {
    await system.close()
    await endpoint.close()
    await model.close()
  }
  try {
    const dispatcher = await system.start('dispatcher', options.dispatcher)
    const runnerEnv = { AGENT_BASE_URL: model.baseUrl, ...options.runner?.env }
    const services: Record<ServiceName, Service> = {
      dispatcher,
      gateway: await system.start('gateway', options.gateway),
      runner: await system.start('runner', { env: runnerEnv }),
      app: await system.start('app', options.app),
    }
    const attacker = await createOrganization(system)
    const headers = apiHeadersOf(attacker)
    const read = async (ids: readonly string[]): Promise<EndedRun[]> => {
      const query = `SELECT id, status, error FROM starts WHERE id = ANY ($1) AND status IN ('succeeded', 'failed')`
      return (await system.pool.query<EndedRun>(query, [ids])).rows
    }
    /** Waits until the runs have ended; after the time-out it resolves to those that have. */
    const waitForRuns = async (ids: readonly string[], timeoutMs = 12_000): Promise<EndedRun[]> => {
      const endsAt = performance.now() + timeoutMs
      const areAllEnded = async () => performance.now() > endsAt || (await read(ids)).length === ids.length
      await waitUntil(areAllEnded, { timeoutMs: timeoutMs + 10_000, intervalMs: 50 })
      return await read(ids)
    }
    /**
     * Sends starts of the attacker at once, each in a new session unless one is given. Resolves to the ids of the
     * accepted ones.
     */
    const start = async (workflowId: string, contexts: readonly string[], sessionId?: string): Promise<string[]> => {
      const url = `${services.gateway.url}/v1/workflows/${workflowId}/start`
      const responses = await Promise.all(
        contexts.map((context) =>
          requestOnce(url, { method: 'POST', headers, body: JSON.stringify({ context, session_id: sessionId }) }),
        ),
      )
      return responses.flatMap(({ status, text }) => (status === 202 ? (JSON.parse(text) as { id: string }).id : []))
    }
    return {
      system,
      services,
      victim: await createVictim(system, services),
      attacker,
      /** The attacker's endpoint, in this process. */
      endpoint,
      /**
       * Answers the attacker's runs in place of the model. It is used if the runner's settings name an Anthropic model.
       */
      answerAsModel: (answer: (question: ModelQuestion) => ModelAnswer) => void (answerAttacker = answer),
      /** The headers of the attacker's requests to the gateway. */
      headers,
      /** The headers of requests to the application, of an owner of the attacking organization. */
      appHeaders: appHeadersOf(await createSignedInUser(system.pool, attacker.organizationId)),
      /** Saves a webhook source of the attacker. Resolves to the status of the response, and to the source's id. */
      saveSource: async (name: string, example: object, isVerified = true) =>
        await saveSource(system, dispatcher, attacker, { name, example, endpointUrl: endpoint.url, isVerified }),
      /** Replaces a source's example in the database, as if it had been saved before the limits of today. */
      async storeExample(sourceId: string, example: object): Promise<void> {
        const query = 'UPDATE webhook_sources SET example_request_body = $2, version = version + 1 WHERE id = $1'
        await system.pool.query(query, [sourceId, JSON.stringify(example)])
      },
      createWorkflow: async (description: string) => await createWorkflow(system, attacker, description),
      start,
      waitForRuns,
      /** Starts a workflow that sends to the source, so often at once. Resolves to how the runs ended, with counts. */
      async runAll(source: string, contexts: readonly string[], timeoutMs?: number): Promise<string> {
        const ids = await start(await createWorkflow(system, attacker, `Send it to "${source}".`), contexts)
        const runs = await waitForRuns(ids, timeoutMs)
        const ends = runs.map(({ status, error }) => error?.split(':')[0] ?? status)
        return tally([...ends, ...Array<string>(ids.length - runs.length).fill('still running')])
      },
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

/** What is measured of the victim's requests. Its starts are measured until the payload has arrived. */
export const LATENCY_KINDS = ['reads', 'starts', 'appReads', 'appSaves'] as const
export type LatencyKind = (typeof LATENCY_KINDS)[number]

export interface VictimFigures {
  /** Of the calls that succeeded, in ms. */
  readonly ms: Readonly<Record<LatencyKind, readonly number[]>>
  /** Requests that were not answered as expected, and accepted starts whose payload never arrived or arrived twice. */
  readonly errors: readonly string[]
}

/**
 * An organization that is not attacked itself, with a light, steady load from a process that the attacks do not slow
 * down: 20 reads and 10 starts per second to the gateway, 10 reads and 10 saves to the application.
 */
async function createVictim(system: System, { gateway, app, dispatcher }: Record<ServiceName, Service>) {
  const receiver = await startRemoteReceiver(system)
  const customer = await createCustomer(system, dispatcher, { endpointUrl: receiver.url })
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
    /** Stops the load when all its payloads have arrived, or 30 s later. */
    async stopLoad(): Promise<VictimFigures> {
      const { calls, repeated } = await receiver.finish()
      const msOf = (kind: LatencyKind): number[] =>
        (calls[LATENCY_KINDS.indexOf(kind)] ?? []).flatMap(({ ms, failure }) => (failure === undefined ? ms : []))
      return {
        ms: { reads: msOf('reads'), starts: msOf('starts'), appReads: msOf('appReads'), appSaves: msOf('appSaves') },
        errors: [
          ...calls.flat().flatMap(({ failure }) => failure ?? []),
          ...Array<string>(repeated).fill('A payload arrived twice.'),
        ],
      }
    },
  }
}

/** What a page of the application sends with each request. */
function appHeadersOf({ cookie: { name, value } }: SignedInTestUser): Record<string, string> {
  return { cookie: `${name}=${value}`, 'sec-fetch-site': 'same-origin', 'content-type': 'application/json' }
}

/** The model's last answer in a run. */
export const endRun: ModelAnswer = { toolCalls: [{ name: 'end_run', arguments: { status: 'done', reason: 'Sent.' } }] }

/** Lets the model send the context of a victim's start to its endpoint. Undefined for a run of the attacker. */
function answerVictim(request: ModelRequest): ModelAnswer | undefined {
  const text = /victim start \d+/.exec(JSON.stringify(request.body['messages']))?.[0]
  if (text === undefined) return undefined
  const { sendTool, isFirst } = toQuestion(request)
  return isFirst ? { toolCalls: [{ name: sendTool, arguments: { text } }] } : endRun
}

function toQuestion({ conversation: { tools, messages } }: ModelRequest): ModelQuestion {
  const sendTool = tools.find(({ name }) => name.startsWith('send_to_'))?.name ?? ''
  return { sendTool, isFirst: messages.length === 1 }
}
