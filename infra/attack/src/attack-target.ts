import { createWorkflow, saveSource } from '@workflow-service/bench/customer'
import {
  type Environment,
  type ProcessLimits,
  type Service,
  startEnvironment,
} from '@workflow-service/bench/environment'
import { seedOrganization, type SeededOrganization } from '@workflow-service/bench/seed'
import {
  createSignedInUser,
  type CustomerEndpoint,
  type ModelAnswer,
  type ModelRequest,
  type SignedInTestUser,
  startCustomerEndpoint,
  startStubModelServer,
  waitUntil,
} from '@workflow-service/testkit'
import { appHeadersOf, createVictim, type Victim } from './victim.ts'

export type ServiceName = 'gateway' | 'dispatcher' | 'runner' | 'app'

/** Settings and limits of the services in an attack, beside the defaults of the benchmark's environment. */
export type ServiceOptions = Partial<
  Record<ServiceName, { readonly env?: Record<string, string>; readonly limits?: ProcessLimits }>
>

/** How a run ended. */
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
export interface AttackTarget {
  readonly environment: Environment
  readonly services: Record<ServiceName, Service>
  readonly victim: Victim
  readonly attacker: SeededOrganization
  /** An owner of the attacking organization, signed in to the application. */
  readonly attackingOwner: SignedInTestUser
  /** The attacker's endpoint, in this process. */
  readonly endpoint: CustomerEndpoint
  /** Answers the attacker's runs in place of the model. It is used if the runner's settings name an Anthropic model. */
  answerAsModel(answer: (question: ModelQuestion) => ModelAnswer): void
  /** The headers of the attacker's requests to the gateway. */
  readonly headers: Record<string, string>
  /** The headers of the attacking owner's requests to the application. */
  readonly appHeaders: Record<string, string>
  /** Saves a webhook source of the attacker. Resolves to the status of the answer, and to the source's id. */
  saveSource(name: string, example: object, isVerified?: boolean): Promise<{ status: number; sourceId: string }>
  /** Replaces a source's example in the database, as if it had been saved before the limits of today. */
  storeExample(sourceId: string, example: object): Promise<void>
  /** Creates a workflow of the attacker. */
  createWorkflow(description: string): Promise<string>
  /** Sends starts of the attacker at once, each in a new session. Resolves to the ids of the accepted ones. */
  start(workflowId: string, contexts: readonly string[]): Promise<string[]>
  /** Waits until the runs have ended; after the time-out it resolves to those that have. */
  waitForRuns(ids: readonly string[], timeoutMs?: number): Promise<EndedRun[]>
  /** Starts the runner again after it was killed. */
  restartRunner(): Promise<void>
  close(): Promise<void>
}

/** Starts the services with a victim and an attacker. */
export async function startAttackTarget(options: ServiceOptions = {}): Promise<AttackTarget> {
  const environment = await startEnvironment({})
  const { client } = environment
  const endpoint = await startCustomerEndpoint()
  let answerAttacker: ((question: ModelQuestion) => ModelAnswer) | undefined
  const model = await startStubModelServer({
    otherwise: (request) => answerVictim(request) ?? answerAttacker?.(toQuestion(request)) ?? endRun,
  })
  const close = async (): Promise<void> => {
    await environment.close()
    await endpoint.close()
    await model.close()
  }
  try {
    const dispatcher = await environment.startDispatcher(options.dispatcher?.env, options.dispatcher?.limits)
    const startRunner = () =>
      environment.startRunner(dispatcher.url, { AGENT_BASE_URL: model.baseUrl, ...options.runner?.env })
    const [gateway, runner, app, victim, attacker] = [
      await environment.startGateway(options.gateway?.env, options.gateway?.limits),
      await startRunner(),
      await environment.startApp(dispatcher.url, options.app?.env),
      await createVictim(environment, dispatcher),
      await seedOrganization(client),
    ]
    const services = { gateway, dispatcher, runner, app }
    const headers = { authorization: `Bearer ${attacker.apiKey}`, 'content-type': 'application/json' }
    const attackingOwner = await createSignedInUser(client, attacker.organizationId)
    return {
      environment,
      services,
      victim,
      attacker,
      attackingOwner,
      endpoint,
      answerAsModel: (answer) => void (answerAttacker = answer),
      headers,
      appHeaders: appHeadersOf(attackingOwner),
      saveSource: (name, example, isVerified = true) =>
        saveSource(environment, dispatcher, attacker, { name, example, endpointUrl: endpoint.url, isVerified }),
      async storeExample(sourceId, example) {
        const query = 'UPDATE webhook_sources SET example_request_body = $2, version = version + 1 WHERE id = $1'
        await client.query(query, [sourceId, JSON.stringify(example)])
      },
      createWorkflow: (description) => createWorkflow(client, attacker.organizationId, description),
      async start(workflowId, contexts) {
        const answers = await Promise.all(
          contexts.map(async (context) => {
            const url = `${gateway.url}/v1/workflows/${workflowId}/start`
            const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify({ context }) })
            const body = (await response.json()) as { id?: string }
            return response.status === 202 && body.id !== undefined ? [body.id] : []
          }),
        )
        return answers.flat()
      },
      async waitForRuns(ids, timeoutMs = 12_000) {
        const read = async (): Promise<EndedRun[]> => {
          const query = `SELECT id, status, error FROM starts WHERE id = ANY ($1) AND status IN ('succeeded', 'failed')`
          return (await client.query<EndedRun>(query, [ids])).rows
        }
        const endsAt = performance.now() + timeoutMs
        const areAllEnded = async () => performance.now() > endsAt || (await read()).length === ids.length
        await waitUntil(areAllEnded, { timeoutMs: timeoutMs + 10_000, intervalMs: 50 })
        return read()
      },
      async restartRunner() {
        services.runner = await startRunner()
      },
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
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
