import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach } from '@jest/globals'
import { readAppConfig, startApp } from '@workflow-service/app'
import { newId } from '@workflow-service/database'
import { applyManifests, toManifest } from '@workflow-service/database/manifest'
import { readDispatcherConfig, startDispatcher } from '@workflow-service/dispatcher'
import { readGatewayConfig, startGateway } from '@workflow-service/gateway'
import { createInProcessQueue } from '@workflow-service/messaging'
import { readRunnerConfig, startRunner } from '@workflow-service/runner'
import { createLogger } from '@workflow-service/service-kit'
import { freePort, type StartedProcess, startProcess } from '@workflow-service/testkit'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import type { ServiceName } from '../../../service-settings.ts'

export interface Workflow {
  readonly workflowId: string
  readonly apiKey: string
}

const RUNNER_PROCESS = fileURLToPath(
  new URL('../../../../services/runner/test/support/runner-process.ts', import.meta.url),
)
const FAST_TIMING = { leaseMs: 1_500, renewMs: 300, sweepMs: 200 }

export type RunningServices = Awaited<ReturnType<ReturnType<typeof useServices>['startAll']>>

/** All services on one database. Those in this process share a queue; others find work by the sweep. */
export function useServices() {
  const internalApiToken = randomBytes(24).toString('hex')
  const secretsKey = randomBytes(32).toString('base64')
  const logger = createLogger({ service: 'test', level: 'silent' })
  const sessionQueue = createInProcessQueue()
  const running: { stop(): Promise<void> }[] = []
  const processes: StartedProcess[] = []
  const stopAll = async (): Promise<void> => {
    for (const started of processes.splice(0)) started.kill('SIGKILL')
    await Promise.all(running.splice(0).map((service) => service.stop()))
  }
  afterEach(stopAll)
  afterAll(() => sessionQueue.close())
  const database = useTestDatabase({ maxConnections: 4 })
  const common = (): Record<string, string> => ({
    DATABASE_URL: database.url,
    AMQP_URL: 'amqp://127.0.0.1:1',
    INTERNAL_API_TOKEN: internalApiToken,
    SECRETS_KEY: secretsKey,
    WEBHOOK_ALLOWED_SUBNETS: '127.0.0.0/8',
    DISPATCHER_URL: 'http://127.0.0.1:1',
    RATE_LIMIT_PER_MINUTE: '0',
    HOST: '127.0.0.1',
    PORT: '0',
    METRICS_PORT: '0',
  })
  return {
    internalApiToken,
    secretsKey,
    get db() {
      return database.db
    },
    /** Starts the services in this process; `stop` ends them, else the end of the test does. */
    async startAll(more: Readonly<Record<string, string>> = {}, { hasRunner } = { hasRunner: true }) {
      const env = { ...common(), ...more }
      const overrides = { logger, sessionQueue }
      const dispatcher = await startDispatcher(readDispatcherConfig(env), { logger })
      running.push(dispatcher)
      const withDispatcher = { ...env, DISPATCHER_URL: dispatcher.url }
      const gateway = await startGateway(readGatewayConfig(env), overrides)
      running.push(gateway)
      const app = await startApp(readAppConfig(withDispatcher), { ...overrides, hasMaintenance: false })
      running.push(app)
      const runner = hasRunner ? await startRunner(readRunnerConfig(withDispatcher), overrides) : undefined
      if (runner) running.push(runner)
      return {
        gatewayUrl: gateway.url,
        dispatcherUrl: dispatcher.url,
        metricsUrls: {
          gateway: `http://127.0.0.1:${gateway.metricsPort}/metrics`,
          dispatcher: `${dispatcher.url}/metrics`,
          runner: runner ? `http://127.0.0.1:${runner.port}/metrics` : '',
          app: `http://127.0.0.1:${app.metricsPort}/metrics`,
        },
        stop: stopAll,
      }
    },
    /** Starts a service as a process; a runner has a lease of 1.5 s. It is killed after the test. */
    async startProcess(name: ServiceName, more: Readonly<Record<string, string>> = {}): Promise<StartedProcess> {
      const port = await freePort()
      const main = fileURLToPath(new URL(`../../../../services/${name}/src/main.ts`, import.meta.url))
      const started = await startProcess({
        args: name === 'runner' ? [RUNNER_PROCESS, JSON.stringify(FAST_TIMING)] : [main],
        env: { ...common(), PORT: String(port), ...more },
        readyWhen: { url: `http://127.0.0.1:${more['PORT'] ?? port}/healthz` },
      })
      processes.push(started)
      return started
    },
    /** Creates a workflow that posts to the URL, which is not verified. */
    async createWorkflow(
      { url, signingSecret }: { url: string; signingSecret: string | null },
      dispatcherUrl: string,
    ): Promise<Workflow> {
      const organizationId = newId()
      const [applied] = await applyManifests(database.db, [
        toManifest({
          organization: { id: organizationId, name: 'Parrots Inc' },
          users: [{ email: 'ada@parrots.test', first_name: 'Ada', last_name: 'Lovelace' }],
          api_keys: [{ name: 'ci' }],
          workflows: [
            {
              name: 'Forward',
              description: 'Post the parrot to Order intake.',
              scope: 'company_wide',
              triggers: [{ name: 'API', trigger_source: { slug: 'api', name: 'API' } }],
            },
          ],
        }),
      ])
      const source = `${dispatcherUrl}/internal/organizations/${organizationId}/webhook-sources/${newId()}?verify=never`
      const saved = await fetch(source, {
        method: 'PUT',
        headers: { authorization: `Bearer ${internalApiToken}`, 'content-type': 'application/json' },
        body: JSON.stringify({
          name: 'Order intake',
          description: 'Accepts any parrot.',
          endpoint_url: url,
          signing_secret: signingSecret,
          example_request_body: { message: 'text' },
        }),
      })
      if (!saved.ok) throw new Error(`The source was refused: ${await saved.text()}`)
      return { workflowId: applied!.workflows[0]!.id, apiKey: String(applied!.apiKeys[0]!.key) }
    },
  }
}
