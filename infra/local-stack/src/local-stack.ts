import type { AddressInfo, Server } from 'node:net'
import { join } from 'node:path'
import { toShownPath } from '@workflow-service/cli/terminal'
import { startApp } from '@workflow-service/app'
import { buildConsole } from '@workflow-service/console/build'
import { createDatabase, type Database, migrate } from '@workflow-service/database'
import { freePort } from '@workflow-service/dev-servers'
import { startDispatcher } from '@workflow-service/dispatcher'
import { startGateway } from '@workflow-service/gateway'
import { createInProcessQueue } from '@workflow-service/messaging'
import { startRunner } from '@workflow-service/runner'
import { createInternalClient } from '@workflow-service/service-kit/internal-client'
import { wfCommand } from './commands.ts'
import { type LocalConfig, readServiceConfigs, urlOf } from './config.ts'
import {
  applyDemo,
  type Demo,
  DEMO_REQUEST_ID,
  findDemo,
  makeSetupLink,
  readDemo,
  startAgainCommand,
  startDemo,
  syncEndpoint,
  untilRunEnds,
} from './demo.ts'
import { startDemoEndpoint } from './demo-endpoint.ts'
import { followDemo } from './follow-demo.ts'
import { startLocalPostgres } from './local-postgres.ts'
import { completeSecrets, createLocalDir, logsDir, readSavedSettings, saveSettings } from './local-settings.ts'
import { type Loggers, openLogs } from './open-logs.ts'
import { checkPort, holdAppPort } from './running-instance.ts'
import type { Screen } from './screen.ts'
import { createWebhookInbox, type WebhookInbox } from './webhook-inbox.ts'

/**
 * Builds the page if its sources have changed, and starts PostgreSQL, the services, the demo and its endpoint in this
 * process. On the first start, starts the demo workflow. `signal` aborts between two steps. When it rejects, nothing is
 * left running.
 * @throws LocalStackError, EmbeddedPostgresError or SettingsError for what the user can fix.
 */
export async function startLocalStack(config: LocalConfig, screen: Screen, signal: AbortSignal) {
  await using stack = new AsyncDisposableStack()
  signal.throwIfAborted()
  const { localDir } = config
  const savedSettings = await readSavedSettings(localDir)
  await checkPort(config, savedSettings)
  const secrets = completeSecrets(savedSettings)
  const appPort = stack.use(await holdAppPort(config, savedSettings))
  const ports = {
    dispatcher: await freePort(),
    gateway: config.port || (await freePort()),
    app: (appPort.address() as AddressInfo).port,
  }
  const configs = readServiceConfigs(config, secrets, ports)
  await createLocalDir(localDir)
  if (config.unusedSettings.length > 0) screen.unusedSettings(config.unusedSettings)
  const loggers = await openLogs(config, screen, stack)

  const { postgres, db } = await startDatabase(config, screen, loggers.postgres, signal, stack)

  const inbox = createWebhookInbox(screen)
  const endpoint = await startDemoEndpoint({
    port: Number(URL.parse(savedSettings['DEMO_ENDPOINT_URL'] ?? '')?.port ?? 0),
    secret: secrets.DEMO_SIGNING_SECRET,
    onWebhook: (webhook) => inbox.add(webhook),
  })
  stack.defer(() => endpoint.close())
  const [dispatcherUrl, gatewayUrl] = [urlOf(ports.dispatcher), urlOf(ports.gateway)]
  // A given APP_URL is the address as people type it, for example that of a proxy.
  const appUrl = config.env['APP_URL'] || urlOf(ports.app)
  const settings = {
    ...secrets,
    DATABASE_URL: postgres.url,
    DEMO_ENDPOINT_URL: endpoint.url,
    PID: String(process.pid),
    DISPATCHER_URL: dispatcherUrl,
    GATEWAY_URL: gatewayUrl,
    APP_URL: appUrl,
    APP_PORT: String(ports.app),
  }
  // DEMO_IS_DUE: the start that made the secrets was stopped, or failed, before the demo had them.
  const isMissing = Object.keys(secrets).some((name) => savedSettings[name] === undefined)
  const areSecretsNew = isMissing || savedSettings['DEMO_IS_DUE'] !== undefined
  // Saved before the first use of the secrets: data encrypted with a lost key could never be read again.
  await saveSettings(localDir, areSecretsNew ? { ...settings, DEMO_IS_DUE: 'yes' } : settings)

  await screen.step('Dispatcher, runner, gateway and application', async (setNote) => {
    await startServices(configs, postgres.url, loggers, appPort, stack)
    setNote(`public API on ${gatewayUrl}`)
  })
  signal.throwIfAborted()

  const demo = await readDemo(settings)
  const dispatcher = createInternalClient({ url: dispatcherUrl, token: secrets.INTERNAL_API_TOKEN })
  await screen.step('Demo', async (setNote) => {
    try {
      const isApplied = await applyDemo(db, demo, { areSecretsNew })
      await syncEndpoint(db, dispatcher, demo, { endpointUrl: endpoint.url, areSecretsNew })
      if (areSecretsNew) await saveSettings(localDir, settings)
      setNote(isApplied ? describeDemo(demo) : 'unchanged')
    } catch (error) {
      // The service works without its demo, whose things people may have edited.
      setNote(`left as it is: ${describeError(error)}`)
    }
  })
  signal.throwIfAborted()

  const apiKey = secrets.DEMO_API_KEY
  const wf = wfCommand(localDir)
  const { organization, sourceName, canStart, hasRun } = await findDemo(db, demo)
  const isFirstStart = canStart && !hasRun
  if (isFirstStart) await showDemo({ gatewayUrl, apiKey, demo, db, screen, inbox, signal, wf })
  screen.ready({
    isFirstStart,
    gatewayUrl,
    appUrl,
    setupLink: organization && (await makeSetupLink(db, organization, appUrl)),
    demo: organization && {
      organizationId: organization.id,
      sourceName,
      startAgain: canStart ? startAgainCommand(gatewayUrl, apiKey, demo) : undefined,
    },
    wf,
    localDir,
  })
  inbox.showAll(sourceName ?? demo.source.name)

  const running = stack.move()
  const postgresFailure = postgres.exited.then(async () => {
    if (running.disposed) return await new Promise<string>(() => {})
    return `PostgreSQL ended unexpectedly. Its log says why: ${toShownPath(join(logsDir(localDir), 'postgres.log'))}`
  })
  return {
    /** Resolves with the reason when PostgreSQL has ended by itself. */
    postgresFailure,
    stop: () => running.disposeAsync(),
  }
}

/** Starts PostgreSQL with the current schema, and builds the page meanwhile. */
async function startDatabase(
  { localDir }: LocalConfig,
  screen: Screen,
  logger: Loggers['postgres'],
  signal: AbortSignal,
  stack: AsyncDisposableStack,
) {
  const page = buildConsole()
  page.catch(() => {})
  const postgres = await screen.step('PostgreSQL', async (setNote) => {
    const server = await startLocalPostgres(localDir, { signal, logger })
    setNote(server.isNew ? 'data folder created' : 'with the data of the last time')
    return server
  })
  stack.defer(async () => await postgres.stop())
  signal.throwIfAborted()

  const db = createDatabase({ url: postgres.url, applicationName: 'local stack', maxConnections: 4 })
  stack.defer(async () => await db.close())
  await screen.step('Database schema', async (setNote) => {
    const { applied } = await migrate({ databaseUrl: postgres.url })
    setNote(applied.length === 0 ? 'up to date' : `${applied.length} migrations applied`)
  })
  signal.throwIfAborted()

  await screen.step('Page of the application', async (setNote) => setNote((await page) ? 'built' : 'unchanged'))
  signal.throwIfAborted()
  return { postgres, db }
}

const stop = async (service: { stop: () => Promise<void> }): Promise<void> => await service.stop()

/**
 * Starts the services on one in-process queue. `appPort` ends just before the application listens. `stack` stops them,
 * in the opposite order.
 */
async function startServices(
  configs: ReturnType<typeof readServiceConfigs>,
  databaseUrl: string,
  loggers: Loggers,
  appPort: Server,
  stack: AsyncDisposableStack,
): Promise<void> {
  const sessionQueue = stack.adopt(createInProcessQueue(), (queue) => queue.close())
  const dispatcher = await startDispatcher({ ...configs.dispatcher, databaseUrl }, { logger: loggers.dispatcher })
  stack.adopt(dispatcher, stop)
  const overrides = { sessionQueue, logger: loggers.runner, dispatcher: dispatcher.local }
  stack.adopt(await startRunner({ ...configs.runner, databaseUrl }, overrides), stop)
  stack.adopt(await startGateway({ ...configs.gateway, databaseUrl }, { sessionQueue, logger: loggers.gateway }), stop)
  await appPort[Symbol.asyncDispose]()
  stack.adopt(await startApp({ ...configs.app, databaseUrl }, { sessionQueue, logger: loggers.app }), stop)
}

/**
 * Starts the demo workflow through the public API, and shows the webhook that the endpoint receives, or why there is
 * none. Returns after 20 s at the latest, and goes on showing what happens.
 */
async function showDemo(options: {
  gatewayUrl: string
  apiKey: string
  demo: Demo
  db: Database
  screen: Screen
  inbox: WebhookInbox
  signal: AbortSignal
  wf: string
}): Promise<void> {
  const { gatewayUrl, apiKey, demo, db, screen, inbox, signal, wf } = options
  const received = inbox.waitFor(DEMO_REQUEST_ID)
  const start = await startDemo(gatewayUrl, apiKey, demo).catch((error: unknown) => describeError(error))
  if (typeof start === 'string') {
    screen.warning(`The demo workflow was not started. ${start}`)
    return
  }
  screen.demoStarted(demo.workflow.name, start)
  await followDemo({
    screen,
    sourceName: demo.source.name,
    start,
    details: `${wf} runs show ${start.response.id}`,
    received,
    ended: untilRunEnds(db, start.response.id, signal),
    signal,
  })
}

function describeError(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

function describeDemo({ manifest }: Demo): string {
  const { organization, users = [], workflows = [], webhook_sources: sources = [] } = manifest
  const names = sources.map(({ name }) => `"${name}"`).join(', ')
  return `${organization.name} has ${users.length} users, ${workflows.length} workflows, webhook source ${names}`
}
