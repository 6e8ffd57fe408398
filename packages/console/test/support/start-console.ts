import { randomBytes } from 'node:crypto'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readAppConfig, startApp } from '@workflow-service/app'
import type { AppAnswer, AppOperationId, AppRequest, Role } from '@workflow-service/contract'
import { APP_ROUTES } from '@workflow-service/contract/app-routes'
import { type Database, newId } from '@workflow-service/database'
import { readDispatcherConfig, startDispatcher } from '@workflow-service/dispatcher'
import { createInProcessQueue } from '@workflow-service/messaging'
import { readRunnerConfig, startRunner } from '@workflow-service/runner'
import {
  createCapturedLogger,
  createSignedInUser,
  startCustomerEndpoint,
  startStubModelServer,
  type StubModelServer,
  triggerBody,
} from '@workflow-service/testkit'
import { signedInContext } from '@workflow-service/testkit/launch-chromium'
import { buildConsole } from '../../build.ts'

/** Only in links: the browser uses the port that the application has got. */
const APP_URL = 'http://app.acme.test'

/** The whole service in this process, as `npm start` runs it, without an organization. */
export type Console = Awaited<ReturnType<typeof startConsole>>
/** A person who is signed in. */
export type SignedIn = Awaited<ReturnType<Console['signIn']>>

type Call = <Id extends AppOperationId>(id: Id, request?: Partial<AppRequest<Id>>) => Promise<AppAnswer<Id>>

/** Builds the page if its sources have changed, and starts the service on a migrated database. */
export async function startConsole(db: Database, databaseUrl: string) {
  const stack = new AsyncDisposableStack()
  try {
    await buildConsole()
    const endpoint = await startCustomerEndpoint()
    stack.defer(endpoint.close)
    const model = await startStubModelServer()
    stack.defer(model.close)
    const url = await startServices(databaseUrl, model, stack)
    return {
      url,
      db,
      /** The endpoint to use in webhook sources. */
      endpoint,
      /** The API of the model `scripted`, which a workflow may choose. */
      model,
      /** Signs in a new person of an organization, by default the owner of a new one. */
      async signIn({ role = 'owner', organizationId = newId() }: { role?: Role; organizationId?: string } = {}) {
        await db.pool.query(`INSERT INTO organizations (id, name) VALUES ($1, 'Acme') ON CONFLICT DO NOTHING`, [
          organizationId,
        ])
        const { cookie } = await createSignedInUser(db.pool, organizationId, { role })
        const call: Call = async (id, request = {}) => await callAs(`${cookie.name}=${cookie.value}`, url, id, request)
        // `context` opens pages as this person: `browser.newPage(owner.context)`.
        return { organizationId, context: signedInContext(url, cookie), call, ...requestsOf(call) }
      },
      stop: async () => await stack.disposeAsync(),
    }
  } catch (error) {
    await stack.disposeAsync()
    throw error
  }
}

/** Requests that many tests send. */
function requestsOf(call: Call) {
  const newSource = { description: '', signing_secret: null, example_request_body: {}, version: null }
  type Source = AppRequest<'saveWebhookSource'>['body']
  return {
    /** Saves a webhook source, by default a new one without a secret. */
    saveSource: async (values: Partial<Source> & Pick<Source, 'name' | 'endpoint_url'>, id = newId()) =>
      await call('saveWebhookSource', { params: { source_id: id }, body: { ...newSource, ...values } }),
    /** Saves a trigger, by default a new one for the public API. */
    async saveTrigger(workflowId: string, values: Partial<AppRequest<'saveTrigger'>['body']> = {}, id = newId()) {
      const params = { workflow_id: workflowId, trigger_id: id }
      await call('saveTrigger', { params, body: triggerBody({ name: '', ...values }) })
    },
    /** Starts a workflow in a new session, or in a given one. Resolves to the ids of the run and its session. */
    async start(workflowId: string, context: string, sessionId?: string) {
      const body = { id: newId(), context, session_id: sessionId ?? null }
      const started = await call('startWorkflow', { params: { workflow_id: workflowId }, body })
      return { runId: started.run_id, sessionId: started.session_id }
    },
  }
}

async function startServices(
  databaseUrl: string,
  model: StubModelServer,
  stack: AsyncDisposableStack,
): Promise<string> {
  const folder = stack.use(await mkdtempDisposable(join(tmpdir(), 'workflow-service-console-')))
  const models = join(folder.path, 'models.json')
  const scripted = { model: 'openai-compatible:scripted', base_url: model.baseUrl }
  await writeFile(models, JSON.stringify({ default: 'builtin', models: { scripted } }))
  const { logger } = createCapturedLogger()
  const sessionQueue = createInProcessQueue()
  stack.defer(async () => await sessionQueue.close())
  const shared = {
    DATABASE_URL: databaseUrl,
    HOST: '127.0.0.1',
    PORT: '0',
    METRICS_PORT: '0',
    AMQP_URL: 'amqp://in-process',
    INTERNAL_API_TOKEN: randomBytes(32).toString('hex'),
    SECRETS_KEY: randomBytes(32).toString('base64'),
    WEBHOOK_ALLOWED_SUBNETS: '127.0.0.0/8',
  }
  const dispatcher = await startDispatcher(readDispatcherConfig(shared), { logger })
  stack.defer(async () => await dispatcher.stop())
  // Nothing listens there: mails are not sent.
  const mail = { SMTP_URL: 'smtp://127.0.0.1:9', SMTP_FROM: 'Workflows <w@acme.test>' }
  const env = { ...shared, ...mail, DISPATCHER_URL: dispatcher.url, API_URL: 'https://api.acme.test', APP_URL }
  const runner = await startRunner(readRunnerConfig({ ...env, AGENT_MODELS: models }), { sessionQueue, logger })
  stack.defer(async () => await runner.stop())
  const app = await startApp(readAppConfig(env), { sessionQueue, logger })
  stack.defer(async () => await app.stop())
  return app.url
}

async function callAs<Id extends AppOperationId>(
  cookie: string,
  origin: string,
  id: Id,
  request: Partial<AppRequest<Id>>,
): Promise<AppAnswer<Id>> {
  const { params, query, body } = request as {
    params?: Record<string, string>
    query?: Record<string, string>
    body?: object
  }
  const { method, path } = APP_ROUTES[id]
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => params?.[name] ?? '')
  const response = await fetch(`${origin}${filled}?${new URLSearchParams(query).toString()}`, {
    method: method.toUpperCase(),
    headers: { cookie, 'content-type': 'application/json', 'sec-fetch-site': 'same-origin' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  if (!response.ok) throw new Error(`${id} was answered ${response.status}: ${await response.text()}`)
  return (response.status === 204 ? undefined : await response.json()) as AppAnswer<Id>
}
