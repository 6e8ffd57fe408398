import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { createDatabase, type Database, migrate, newId } from '@workflow-service/database'
import { applyManifests, toManifest } from '@workflow-service/database/manifest'
import {
  startCustomerEndpoint,
  type CustomerEndpoint,
  freePort,
  startPostgres,
  type StartedProcess,
  startProcess,
  startRabbitMq,
} from '@workflow-service/testkit'
import type { RunnerTiming } from '../../src/index.ts'

/** A part of the service that can be killed. */
export interface Part {
  readonly name: string
  /** Sends SIGKILL, and resolves when the process has ended. */
  kill(): Promise<void>
  /** Starts the part, and resolves when it is up. */
  restart(): Promise<void>
  /** Sends SIGSTOP. */
  pause(): void
  /** Sends SIGCONT. */
  resume(): void
}

/** The whole service, each part as a child process, with one organization that has one workflow. */
export interface ServiceSystem {
  readonly parts: readonly Part[]
  readonly gatewayUrl: string
  readonly organizationId: string
  readonly workflowId: string
  readonly apiKey: string
  readonly endpoint: CustomerEndpoint
  readonly db: Database
  /** The log lines of all services. */
  output(): string
  stop(): Promise<void>
}

/** Starts two runners and one of each other part. */
export async function startServiceSystem(options: {
  timing: Partial<RunnerTiming>
  /** The longest time for which a part is paused. */
  longestPauseMs: number
  log: (line: string) => void
}): Promise<ServiceSystem> {
  const { timing, longestPauseMs, log } = options
  // A delivery whose dispatcher was killed becomes `unknown` after this time instead of 40 s. Longer than a dispatcher can
  // take here: two pauses, and an endpoint that answers within 1.5 s.
  const deliveryDeadlineMs = 2 * longestPauseMs + 4_000
  const stops: (() => Promise<unknown>)[] = []
  const stopAll = async (): Promise<void> => {
    for (const stop of stops.toReversed()) await stop()
  }
  try {
    const [postgres, rabbitMq, endpoint] = await Promise.all([
      startPostgres(),
      startRabbitMq(),
      startCustomerEndpoint(),
    ])
    stops.push(
      () => endpoint.close(),
      () => rabbitMq.stop(),
      () => postgres.stop(),
    )
    await migrate({ databaseUrl: postgres.url })
    const db = createDatabase({ url: postgres.url, applicationName: 'chaos', maxConnections: 5 })
    stops.push(() => db.close())

    const internalApiToken = randomBytes(24).toString('hex')
    const [gatewayPort, metricsPort, dispatcherPort] = [await freePort(), await freePort(), await freePort()]
    const shared = { DATABASE_URL: postgres.url, HOST: '127.0.0.1' }
    const broker = { AMQP_URL: rabbitMq.url, AMQP_QUEUE_TYPE: 'quorum' }
    const dispatcherUrl = `http://127.0.0.1:${dispatcherPort}`
    const runner = (name: string) =>
      createProcessPart(name, {
        args: [fileURLToPath(new URL('../support/runner-process.ts', import.meta.url)), JSON.stringify(timing)],
        env: { ...shared, ...broker, PORT: '0', DISPATCHER_URL: dispatcherUrl, INTERNAL_API_TOKEN: internalApiToken },
        readyLine: '"service.started"',
      })
    const services = [
      createProcessPart('gateway', {
        args: [mainOf('@workflow-service/gateway')],
        env: {
          ...shared,
          ...broker,
          PORT: String(gatewayPort),
          METRICS_PORT: String(metricsPort),
          RATE_LIMIT_PER_MINUTE: '0',
        },
        readyLine: '"service.started"',
      }),
      createProcessPart('dispatcher', {
        args: [fileURLToPath(new URL('../support/dispatcher-process.ts', import.meta.url)), String(deliveryDeadlineMs)],
        env: {
          ...shared,
          PORT: String(dispatcherPort),
          INTERNAL_API_TOKEN: internalApiToken,
          SECRETS_KEY: randomBytes(32).toString('base64'),
          WEBHOOK_ALLOWED_SUBNETS: '127.0.0.0/8',
        },
        readyLine: '"service.started"',
      }),
      runner('runner 1'),
      runner('runner 2'),
    ]
    stops.push(...services.map((service) => () => service.kill()))
    log('starting the services')
    await Promise.all(services.map((service) => service.restart()))
    const { organizationId, workflowId, apiKey } = await setUpOrganization(
      db,
      dispatcherUrl,
      internalApiToken,
      endpoint,
    )
    return {
      parts: [...services, { name: 'postgres', ...bound(postgres) }, { name: 'rabbitmq', ...bound(rabbitMq) }],
      gatewayUrl: `http://127.0.0.1:${gatewayPort}`,
      organizationId,
      workflowId,
      apiKey,
      endpoint,
      db,
      output: () => services.map((service) => service.output()).join('\n'),
      stop: stopAll,
    }
  } catch (error) {
    await stopAll()
    throw error
  }
}

function bound(server: {
  kill(): Promise<void>
  restart(): Promise<void>
  pause(): void
  resume(): void
}): Omit<Part, 'name'> {
  return {
    kill: () => server.kill(),
    restart: () => server.restart(),
    pause: () => server.pause(),
    resume: () => server.resume(),
  }
}

function mainOf(service: string): string {
  return fileURLToPath(new URL('main.ts', import.meta.resolve(service)))
}

function createProcessPart(
  name: string,
  options: { args: string[]; env: Record<string, string>; readyLine: string },
): Part & { output(): string } {
  const { args, env, readyLine } = options
  let running: StartedProcess | undefined
  const outputs: string[] = []
  return {
    name,
    async kill() {
      if (!running) return
      running.kill('SIGKILL')
      await running.exited
      outputs.push(`--- ${name}\n${running.stdout}${running.stderr}`)
      running = undefined
    },
    async restart() {
      running = await startProcess({ args, env, readyWhen: { line: readyLine }, timeoutMs: 120_000 })
    },
    pause: () => void running?.kill('SIGSTOP'),
    resume: () => void running?.kill('SIGCONT'),
    output: () => [...outputs, `--- ${name}\n${running?.stdout ?? ''}${running?.stderr ?? ''}`].join('\n'),
  }
}

/** One workflow that posts to two webhook sources, one after the other. */
async function setUpOrganization(
  db: Database,
  dispatcherUrl: string,
  token: string,
  endpoint: CustomerEndpoint,
): Promise<{ organizationId: string; workflowId: string; apiKey: string }> {
  const organizationId = newId()
  const [applied] = await applyManifests(db, [
    toManifest({
      organization: { id: organizationId, name: 'Chaos' },
      users: [{ email: 'ada@acme.test', first_name: 'Ada', last_name: 'Lovelace' }],
      api_keys: [{ name: 'chaos', scopes: ['read', 'start'] }],
      workflows: [
        {
          name: 'Forward',
          description: 'Post to Order intake, then to Audit log.',
          scope: 'company_wide',
          is_active: true,
          triggers: [{ name: 'API', is_active: true, trigger_source: { slug: 'api', name: 'API' } }],
        },
      ],
    }),
  ])
  for (const [name, path] of [
    ['Order intake', 'orders'],
    ['Audit log', 'audit'],
  ]) {
    const url = `${dispatcherUrl}/internal/organizations/${organizationId}/webhook-sources/${newId()}?verify=never`
    const saved = await fetch(url, {
      method: 'PUT',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        name,
        description: 'Accepts any message.',
        endpoint_url: `${endpoint.url}/${path}`,
        example_request_body: { message: 'text' },
      }),
    })
    if (!saved.ok) throw new Error(`The source was refused: ${await saved.text()}`)
  }
  return { organizationId, workflowId: applied!.workflows[0]!.id, apiKey: applied!.apiKeys[0]!.key! }
}
