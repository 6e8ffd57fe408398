import { once } from 'node:events'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { createDatabase, migrate } from '@workflow-service/database'
import { readDispatcherConfig, startDispatcher } from '@workflow-service/dispatcher'
import { readGatewayConfig, startGateway } from '@workflow-service/gateway'
import { createInProcessQueue } from '@workflow-service/messaging'
import { readRunnerConfig, startRunner } from '@workflow-service/runner'
import { createLogger, type Logger } from '@workflow-service/service-kit'
import { createDispatcherClient } from '@workflow-service/cli/dispatcher-client'
import { toShownPath } from '@workflow-service/cli/terminal'
import type { LocalConfig } from './config.ts'
import { applyDemo, curlLine, type Demo, followEndpoint, hasStarted, readDemo, startDemo } from './demo.ts'
import { startDemoEndpoint } from './demo-endpoint.ts'
import { startLocalPostgres } from './local-postgres.ts'
import { logsDir, readLastSettings, toSecrets, writeSettings } from './local-settings.ts'
import { inWords, LocalStackError } from './local-stack-error.ts'
import { openLogFile } from './log-file.ts'
import { checkPort } from './running-instance.ts'
import type { Screen } from './screen.ts'
import { servicesEnv } from './services-env.ts'
import { createWebhookBoard, type WebhookBoard } from './webhook-board.ts'

/** A local stack that runs. */
export interface LocalStack {
  /** Resolves with the reason when the stack cannot go on. */
  readonly failed: Promise<string>
  stop(): Promise<void>
}

/** How long the demo is waited for: it takes a fraction of a second. */
const WEBHOOK_TIMEOUT_MS = 20_000

/**
 * Boots everything in this process: PostgreSQL, dispatcher, runner, gateway, the demo and its endpoint; starts the demo
 * workflow the first time. `signal` gives up between two steps. Rejects with nothing left running.
 */
export async function startLocalStack(config: LocalConfig, screen: Screen, signal: AbortSignal): Promise<LocalStack> {
  const stack = new AsyncDisposableStack()
  try {
    return await boot(config, screen, signal, stack)
  } catch (error) {
    await stack.disposeAsync()
    throw error
  }
}

async function boot(
  config: LocalConfig,
  screen: Screen,
  signal: AbortSignal,
  stack: AsyncDisposableStack,
): Promise<LocalStack> {
  signal.throwIfAborted()
  const { localDir } = config
  const last = await readLastSettings(localDir)
  checkServiceSettings(config)
  await checkPort(config, last)
  const loggerFor = await openLogs(config, screen, stack)

  const postgres = await screen.step('PostgreSQL', async (remark) => {
    const server = await startLocalPostgres(localDir, { last, signal, logger: loggerFor('postgres') })
    remark(server.isNew ? 'data folder made' : 'with the data of before')
    return server
  })
  stack.defer(async () => await postgres.stop())
  signal.throwIfAborted()

  const db = createDatabase({ url: postgres.url, applicationName: 'local stack', maxConnections: 4 })
  stack.defer(async () => await db.close())
  await screen.step('Database schema', async (remark) => {
    const { applied } = await migrate({ databaseUrl: postgres.url })
    remark(applied.length === 0 ? 'up to date' : `${applied.length} migrations applied`)
  })
  signal.throwIfAborted()

  const secrets = toSecrets(last)
  const webhooks = createWebhookBoard(screen)
  const endpoint = await startDemoEndpoint({
    port: Number(last['DEMO_ENDPOINT_URL'] ? new URL(last['DEMO_ENDPOINT_URL']).port : 0),
    secret: secrets.DEMO_SIGNING_SECRET,
    onWebhook: webhooks.arrived,
  })
  stack.defer(async () => await endpoint.close())
  const settings = {
    ...secrets,
    DATABASE_URL: postgres.url,
    DEMO_ENDPOINT_URL: endpoint.url,
    PID: String(process.pid),
  }
  // Before anything is encrypted or made with the secrets.
  await writeSettings(localDir, settings)

  const { dispatcherUrl, gatewayUrl } = await screen.step('Dispatcher, runner and gateway', async (remark) => {
    const sessionQueue = createInProcessQueue()
    stack.defer(async () => await sessionQueue.close())
    const services = servicesEnv(config, settings)
    const dispatcher = await startDispatcher(readDispatcherConfig(services.dispatcher('0')), {
      logger: loggerFor('dispatcher'),
    })
    stack.defer(async () => await dispatcher.stop())
    const runner = await startRunner(readRunnerConfig(services.runner(dispatcher.url)), {
      sessionQueue,
      logger: loggerFor('runner'),
    })
    stack.defer(async () => await runner.stop())
    const gateway = await startGateway(readGatewayConfig(services.gateway()), {
      sessionQueue,
      logger: loggerFor('gateway'),
    })
    stack.defer(async () => await gateway.stop())
    remark(`public API on ${gateway.url}`)
    return { dispatcherUrl: dispatcher.url, gatewayUrl: gateway.url }
  })
  await writeSettings(localDir, { ...settings, DISPATCHER_URL: dispatcherUrl, GATEWAY_URL: gatewayUrl })
  signal.throwIfAborted()

  const demo = await readDemo(settings)
  const dispatcher = createDispatcherClient({ url: dispatcherUrl, token: secrets.INTERNAL_API_TOKEN })
  await screen.step('Demo', async (remark) => {
    const areSecretsNew = Object.keys(secrets).some((name) => last[name] === undefined)
    const isApplied = await applyDemo(db, dispatcher, demo, { areSecretsNew })
    if (!isApplied) await followEndpoint(db, dispatcher, demo, endpoint.url)
    remark(isApplied ? describeDemo(demo) : 'as it was left')
  })
  signal.throwIfAborted()

  const isFirst = !(await hasStarted(db, demo))
  if (isFirst) await showDemo({ gatewayUrl, apiKey: secrets.DEMO_API_KEY, demo, screen, webhooks, signal })
  screen.ready({
    isFirst,
    gatewayUrl,
    curl: curlLine(gatewayUrl, secrets.DEMO_API_KEY, demo),
    localDir,
    logsDir: logsDir(localDir),
  })
  webhooks.showFromNowOn(demo.source.name)

  let isStopping = false
  const failed = postgres.exited.then(async () => {
    if (isStopping) return await new Promise<string>(() => {})
    return `PostgreSQL ended by itself: ${toShownPath(join(logsDir(localDir), 'postgres.log'))} says why.`
  })
  return {
    failed,
    stop: async () => {
      isStopping = true
      await stack.disposeAsync()
    },
  }
}

type LoggerFor = (service: string) => Logger

async function openLogs(config: LocalConfig, screen: Screen, stack: AsyncDisposableStack): Promise<LoggerFor> {
  const dir = logsDir(config.localDir)
  try {
    await mkdir(dir, { recursive: true })
  } catch (error) {
    throw new LocalStackError(`${toShownPath(dir)} cannot be made: ${inWords(error)}.`, { cause: error })
  }
  let isTold = false
  const onFault = (error: Error) => {
    if (!isTold) screen.fault(`The logs cannot be written any more (${inWords(error)}); everything else goes on.`)
    isTold = true
  }
  const loggers = new Map<string, Logger>()
  for (const service of ['postgres', 'dispatcher', 'runner', 'gateway']) {
    const file = await openLogFile(dir, service, onFault)
    stack.defer(async () => await file.close())
    loggers.set(service, createLogger({ service, level: config.logLevel, destination: file.stream }))
  }
  return (service) => loggers.get(service)!
}

/** Faults of what the user has set are found before anything is started. */
function checkServiceSettings(config: LocalConfig): void {
  const anything = {
    DATABASE_URL: 'postgres://x',
    INTERNAL_API_TOKEN: 'x'.repeat(32),
    SECRETS_KEY: `${'A'.repeat(43)}=`,
  }
  const services = servicesEnv(config, anything)
  readRunnerConfig(services.runner('http://x'))
  readGatewayConfig(services.gateway())
}

/** One start through the public API, and the webhook as it arrived. */
async function showDemo(options: {
  gatewayUrl: string
  apiKey: string
  demo: Demo
  screen: Screen
  webhooks: WebhookBoard
  signal: AbortSignal
}): Promise<void> {
  const { gatewayUrl, apiKey, demo, screen, webhooks, signal } = options
  const start = await startDemo(gatewayUrl, apiKey, demo)
  screen.demoStarted(demo.workflow.name, start)
  const timeout = AbortSignal.timeout(WEBHOOK_TIMEOUT_MS)
  const webhook = await Promise.race([webhooks.waitFor(start.requestId), untilAborted([timeout, signal])])
  signal.throwIfAborted()
  if (webhook) screen.webhookArrived(demo.source.name, webhook, start.sentAt)
  else screen.demoIsMissing(`npm run -s wf -- runs show ${start.answer.id} tells what happened.`)
}

async function untilAborted(signals: AbortSignal[]): Promise<undefined> {
  const any = AbortSignal.any(signals)
  if (!any.aborted) await once(any, 'abort')
}

function describeDemo({ manifest }: Demo): string {
  const { organization, users = [], workflows = [], webhook_sources: sources = [] } = manifest
  const names = sources.map(({ name }) => `"${name}"`).join(', ')
  return `${organization.name} has ${users.length} users, ${workflows.length} workflows, webhook source ${names}`
}
