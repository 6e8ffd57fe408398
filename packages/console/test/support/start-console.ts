import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readAppConfig } from '@workflow-service/app'
import { startDataApp } from '@workflow-service/app/test/data-fixtures'
import { type AppCall, startTestApp, testEnv } from '@workflow-service/app/test/test-app'
import type { AppOperationId, AppRequest, AppResponseBody, Role } from '@workflow-service/contract'
import { type Database, newId } from '@workflow-service/database'
import { readRunnerConfig, startRunner } from '@workflow-service/runner'
import { createCapturedLogger, startStubModelServer, triggerBody } from '@workflow-service/testkit'
import { signedInContext } from '@workflow-service/testkit/launch-chromium'
import { buildConsole } from '../../build.ts'

/** The whole service in this process, as `npm start` runs it. */
export type Console = Awaited<ReturnType<typeof startConsole>>
/** A person who is signed in. */
export type SignedIn = Awaited<ReturnType<Console['signIn']>>

type Call = <Id extends AppOperationId>(id: Id, request?: Partial<AppRequest<Id>>) => Promise<AppResponseBody<Id>>

/** Nothing listens there: mails are not sent. */
const MAIL = { SMTP_URL: 'smtp://127.0.0.1:9', SMTP_FROM: 'Workflows <w@acme.test>' }

/** Builds the page if its sources have changed, and starts the service on a migrated database. */
export async function startConsole(db: Database, databaseUrl: string) {
  await buildConsole()
  const config = readAppConfig({ ...testEnv(databaseUrl), ...MAIL, API_URL: 'https://api.acme.test' })
  const app = await startTestApp(db, config)
  const { stack, sessionQueue } = app
  try {
    const { url, endpoint, env, call: callApp } = await startDataApp(app)
    const model = await startStubModelServer()
    stack.defer(model.close)
    const folder = stack.use(await mkdtempDisposable(join(tmpdir(), 'workflow-service-console-')))
    const models = join(folder.path, 'models.json')
    const scripted = { model: 'openai-compatible:scripted', base_url: model.baseUrl }
    await writeFile(models, JSON.stringify({ default: 'builtin', models: { scripted } }))
    const { logger } = createCapturedLogger()
    const runner = await startRunner(readRunnerConfig({ ...env, AGENT_MODELS: models }), { sessionQueue, logger })
    stack.defer(async () => await runner.stop())
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
        const person = await app.createPerson(organizationId, role)
        const call: Call = async (id, request) => {
          const { status, text, body } = await callApp(person, id, request as AppCall)
          if (status >= 400) throw new Error(`${id} was answered ${status}: ${text}`)
          return body
        }
        // `context` opens pages as this person: `browser.newPage(owner.context)`.
        const context = signedInContext(url, { name: '__Host-session', value: person.token })
        return { organizationId, context, call, ...requestsOf(call) }
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
