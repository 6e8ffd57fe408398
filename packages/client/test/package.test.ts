import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { close, freePort, listen, waitUntil } from '@workflow-service/testkit'
import { findNodes, type InstalledPackage, installPackage } from '@workflow-service/testkit/install-package'
import { type FailingProxy, startFailingProxy } from '@workflow-service/testkit/start-failing-proxy'
import { useBrowser } from '@workflow-service/testkit/use-browser'
import { OPERATIONS, type OperationId } from '@workflow-service/contract'
import { createClientSample } from '../../../services/gateway/src/docs/client-samples.ts'
import { startableWorkflow, useTestGateway } from '../../../services/gateway/test/support/test-gateway.ts'
import type * as client from '../src/index.ts'
import { type ClientOptions, WorkflowClient, WorkflowServiceError } from '../src/index.ts'

const folder = join(import.meta.dirname, '..')
const gateway = useTestGateway()
const browser = useBrowser()
let installed: InstalledPackage

const workflow = startableWorkflow()

beforeAll(async () => {
  installed = await installPackage(folder)
  await gateway.apply({ workflows: [workflow] }, gateway.organization.id)
  await gateway.createEndedRun(workflow.id)
})
afterAll(() => installed.remove())

const environment = () => ({
  WORKFLOW_API_KEY: gateway.organization.key,
  WORKFLOW_BASE_URL: gateway.url,
  WORKFLOW_ID: workflow.id,
})

/** The examples of the README: each is a module of its own. */
const examples = [...readFileSync(join(folder, 'README.md'), 'utf8').matchAll(/```ts\n([^]*?)```/g)].map(
  ([, text = '']) => text,
)

const guidesFolder = join(folder, '../../services/gateway/src/docs/guides')

/**
 * The samples in TypeScript of the reference page. The blocks of a guide continue each other: together they are a
 * module.
 */
function referenceSamples(): { file: string; text: string }[] {
  const guides = readdirSync(guidesFolder).map((name) => {
    const blocks = readFileSync(join(guidesFolder, name), 'utf8').matchAll(/^```ts\n([^]*?)^```/gm)
    const text = [...blocks].map(([, block = '']) => block).join('\n')
    return { file: `${name}.mts`, text: text.replaceAll('http://127.0.0.1:8080', gateway.url) }
  })
  const operations = (Object.keys(OPERATIONS) as OperationId[]).map((id) => ({
    file: `${id}.mts`,
    text: createClientSample(id, gateway.url).replaceAll('01890a5d-ac96-774b-bcce-b302099a8057', workflow.id),
  }))
  return [...guides, ...operations].filter(({ text }) => text !== '')
}

describe('the packed package', () => {
  test('has no findings of publint and "are the types wrong", and no dependencies', () => {
    expect(installed.problems).toEqual([])
    const manifest = readFileSync(join(installed.project, 'node_modules/@workflow-service/client/package.json'), 'utf8')
    expect(JSON.parse(manifest)).not.toHaveProperty('dependencies')
    expect(installed.files.filter((file) => !/^dist\/(esm|cjs)\/[\w-]+\.(d\.ts|js)$/.test(file))).toEqual([
      'LICENSE',
      'README.md',
      'dist/cjs/package.json',
      'package.json',
    ])
  })

  test('type-checks with its examples and the samples of the reference page, in ES modules, in CommonJS and on a page', async () => {
    const receiver = join(folder, '../webhook-token')
    symlinkSync(receiver, join(installed.project, 'node_modules/@workflow-service/webhook-token'))
    for (const name of ['express', '@types']) {
      symlinkSync(join(receiver, 'node_modules', name), join(installed.project, 'node_modules', name))
    }
    // CommonJS has no `await` at the top level, as the first example has.
    const files = examples.map((text, index) => ({ esm: `example-${index}.mts`, cjs: `example-${index}.cts`, text }))
    for (const { esm, cjs, text } of files) {
      installed.write(esm, text)
      installed.write(cjs, text)
    }
    const [esm, cjs] = [files.map((file) => file.esm), files.slice(1).map((file) => file.cjs)]
    const samples = referenceSamples()
    for (const { file, text } of samples) installed.write(file, text)
    const misuse = '// @ts-expect-error -- an instance has it\nexport const wrong = ApiError.code\n'
    installed.write('wrong.mts', `import { ApiError } from '@workflow-service/client'\n${misuse}`)
    const options = { module: 'nodenext', skipLibCheck: false }
    const node = { ...options, types: ['node'], exactOptionalPropertyTypes: true, noUnusedLocals: true }
    await installed.typeCheck([...esm, ...cjs, 'wrong.mts', ...samples.map(({ file }) => file)], node)
    // Without the types of Node.
    const page = { ...options, lib: ['es2022', 'dom'] }
    await expect(installed.typeCheck(esm.slice(1), page)).resolves.toBeUndefined()
  })

  test('runs the samples of the reference page as shown', async () => {
    const samples = referenceSamples()
    for (const { file, text } of samples) installed.write(file, text)
    // The others are servers.
    const calls = samples.filter(({ text }) => !text.includes('app.listen'))
    const outputs = calls.map(async ({ file }) => [file, await installed.run(file, { env: environment() })])
    expect(Object.fromEntries(await Promise.all(outputs))).toMatchObject({
      'first-start.md.mts': expect.stringContaining(gateway.organization.id),
      'getOrganization.mts': expect.stringMatching(/./),
      'getRun.mts': expect.stringContaining('succeeded'),
      'getSession.mts': expect.stringContaining('succeeded'),
      'getWorkflow.mts': expect.stringMatching(/./),
      'idempotency.md.mts': '',
      'listWorkflows.mts': expect.stringContaining(workflow.id),
      'sessions.md.mts': '',
      'startWorkflow.mts': '',
    })
  })

  const nodes = [...findNodes()].filter(([version]) => Number.parseInt(version.slice(1)) >= 20)
  test.each(nodes)(
    'runs the first example of the README on Node %s, by import and by require',
    async (_version, node) => {
      const [first = ''] = examples
      const code = first.replaceAll('!', '')
      installed.write('use.mjs', code)
      const names = '{ WorkflowClient }'
      const required = code.replace(
        /^import .*$/m,
        `const ${names} = require('@workflow-service/client')\nvoid (async () => {`,
      )
      installed.write('use.cjs', `${required}})()`)
      for (const file of ['use.mjs', 'use.cjs']) {
        expect(await installed.run(file, { node, env: environment() })).toMatch(
          /^Run [0-9a-f-]{36} in session [0-9a-f-]{36}\n$/,
        )
      }
    },
  )

  test('works in a browser, for an origin that the gateway allows', async () => {
    const modules = join(installed.project, 'node_modules/@workflow-service/client/dist/esm')
    const server = createServer(({ url = '/' }, response) => {
      const isModule = url.endsWith('.js')
      response.setHeader('Content-Type', isModule ? 'text/javascript' : 'text/html')
      response.end(isModule ? readFileSync(join(modules, url)) : '<!doctype html><link rel="icon" href="data:,">')
    })
    const origin = `http://127.0.0.1:${await listen(server)}`
    try {
      const { url } = await gateway.startAnother({ corsOrigins: [origin] })
      const page = await browser.newPage({ baseURL: origin })
      await page.goto('/')
      const seen = await page.evaluate(callFromPage, { apiKey: gateway.organization.key, baseUrl: url })
      expect(seen).toEqual({ requestId: 'page-1', isSame: true })
    } finally {
      await close(server)
    }
  })
})

function createClient(options: Omit<ClientOptions, 'apiKey'>): WorkflowClient {
  return new WorkflowClient({ apiKey: gateway.organization.key, ...options })
}

test('a client follows a run over a restart of the gateway', async () => {
  const port = await freePort()
  const stopped = await gateway.startAnother({ port })
  const client = createClient({ baseUrl: stopped.url })
  const { id } = await client.workflows.start(workflow.id, { context: 'follow' })
  const waiting = client.runs.wait(id)
  const metricsUrl = `http://127.0.0.1:${stopped.metricsPort}`
  await waitUntil(async () => (await gateway.metric('gateway_run_waits', metricsUrl)) === 1)
  await stopped.stop()
  await gateway.startAnother({ port })
  await gateway.db.prisma.start.update({ where: { id }, data: { status: 'succeeded', finishedAt: new Date() } })
  expect(await waiting).toMatchObject({ id, status: 'succeeded' })
})

describe('against a server that fails at random', () => {
  const CALLS = 300
  let proxy: FailingProxy
  beforeAll(async () => (proxy = await startFailingProxy(gateway.url)))
  afterAll(async () => await proxy.close())

  test('300 calls start once each, also where the response to a recorded start is lost', async () => {
    const client = createClient({ baseUrl: proxy.url, timeoutMs: 3000 })
    const run = randomUUID()
    let repeated = 0
    const startOnce = async (context: string): Promise<string> => {
      let idempotencyKey: string | undefined
      for (let tries = 1; ; tries += 1) {
        try {
          return (await client.workflows.start(workflow.id, { context }, { idempotencyKey })).id
        } catch (error) {
          if (!(error instanceof WorkflowServiceError) || tries === 20) throw error
          ;({ idempotencyKey } = error)
          repeated += 1
        }
      }
    }
    const contexts = Array.from({ length: CALLS }, (_, index) => `${run} ${index}`)
    const ids = new Map<string, string>()
    const waiting = contexts.values()
    const work = async (): Promise<void> => {
      for (const context of waiting) ids.set(context, await startOnce(context))
    }
    // With 100 at once, a busy machine answers none of them in time, and each attempt adds to the work.
    await Promise.all(Array.from({ length: 30 }, work))

    const { rows } = await gateway.db.pool.query<{ id: string; context: string }>(
      'SELECT id, context FROM starts WHERE starts_with(context, $1)',
      [run],
    )
    expect(rows).toHaveLength(CALLS)
    for (const { id, context } of rows) expect(ids.get(context)).toBe(id)
    expect(proxy.failures).toEqual({ count: expect.any(Number), unseen: [] })
    expect(repeated).toBeGreaterThan(0)
  })
})

/** Runs in the browser. */
async function callFromPage({ apiKey, baseUrl }: { apiKey: string; baseUrl: string }) {
  const module = '/index.js'
  const loaded = (await import(module)) as typeof client
  const { workflows } = new loaded.WorkflowClient({ apiKey, baseUrl })
  const { data } = await workflows.list()
  const started = await workflows.start(data[0]!.id, { context: 'From a page' }, { requestId: 'page-1' })
  return { requestId: loaded.requestIdOf(started), isSame: started.workflow_id === data[0]!.id }
}
