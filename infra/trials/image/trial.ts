import { randomBytes, randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  forwardManifest,
  freePort,
  type PrivateRabbitMq,
  startCustomerEndpoint,
  startPostgres,
  startProcess,
  type StartedProcess,
  startRabbitMq,
  waitUntil,
} from '@workflow-service/testkit'
import { checkServiceToken } from '@workflow-service/webhook-token'
import { anyText, defineTrial, type Log } from '../shared/define-trial.ts'
import { secondsSince } from '../shared/figures.ts'
import { send } from '../shared/load.ts'
import { type Container, type ContainerEngine, findContainerEngine, runToEnd } from './container-engine.ts'

const ROOT = join(import.meta.dirname, '../../..')
const DOCKERFILE = join(ROOT, 'infra/Dockerfile')
const TAG = 'localhost/workflow-service-trial'
/** A service in a container, on a busy machine. */
const BOOT_TIMEOUT_MS = 120_000
const DELIVERY_TIMEOUT_MS = 60_000
const STOP_TIMEOUT_MS = 60_000
const SIGNING_SECRET = 'a signing secret of the trial'

export const trial = defineTrial({
  name: 'image',
  summary: 'builds the image, runs the services from it, and sends one start through',
  options: { 'node-image': anyText("the base image; by default the one that the Dockerfile's NODE_IMAGE names") },
  async run({ options: { 'node-image': given }, log }) {
    try {
      const nodeImage = given ?? (await defaultNodeImage())
      const engine = await findContainerEngine()
      await step(log, `image built with ${engine.name} on ${nodeImage}`, async () => await build(engine, nodeImage))
      await using container = await engine.open(TAG)
      await step(log, 'runs as node, which can write nothing but the compile cache', () => checkUser(container))
      await tryService(container, { hasPage: true, log })
      log('The image works.')
      return []
    } catch (error) {
      return [error instanceof Error ? error.message : String(error)]
    }
  },
})

/** Runs `wf` and the four services in the container, and sends one start through. @throws Error */
export async function tryService(
  container: Container,
  { hasPage, log, ...given }: { hasPage: boolean; rabbitMq?: PrivateRabbitMq; log: Log },
): Promise<void> {
  await using stack = new AsyncDisposableStack()
  const postgres = stack.adopt(await startPostgres(), async (server) => await server.stop())
  const rabbitMq = stack.adopt(given.rabbitMq ?? (await startRabbitMq()), async (server) => await server.stop())
  const endpoint = stack.adopt(await startCustomerEndpoint(), async (server) => await server.close())
  const ports: Record<string, string> = {}
  for (const name of ['dispatcher', 'runner', 'gateway', 'app', 'gatewayMetrics', 'appMetrics'])
    ports[name] = String(await freePort())
  const urlOf = (name: string): string => `http://127.0.0.1:${ports[name]}`
  const env = {
    DATABASE_URL: postgres.url,
    AMQP_URL: rabbitMq.url,
    DISPATCHER_URL: urlOf('dispatcher'),
    INTERNAL_API_TOKEN: randomBytes(32).toString('hex'),
    SECRETS_KEY: randomBytes(32).toString('base64'),
    WEBHOOK_ALLOWED_SUBNETS: '127.0.0.0/8',
    APP_URL: urlOf('app'),
    HOST: '127.0.0.1',
    LOG_LEVEL: 'warn',
  }
  const wf = async (args: string[], input?: string): Promise<string> =>
    await runProgram(container, ['node', 'packages/cli/src/main.ts', ...args], env, input)
  await step(log, 'wf migrate', async () => await wf(['migrate']))

  const running: StartedProcess[] = []
  stack.defer(async () => {
    for (const service of running) await stop(container, service)
  })
  for (const service of ['dispatcher', 'runner', 'gateway', 'app']) {
    const metricsPort = ports[`${service}Metrics`] ?? ports[service]!
    const own = { ...env, PORT: ports[service]!, METRICS_PORT: metricsPort }
    await step(log, `${service} is ready`, async () => {
      running.push(await startService(container, service, own, metricsPort))
    })
  }

  const { workflowId, key } = await step(
    log,
    'wf apply: an organization, a verified webhook source, a workflow, a key',
    async () => readApplied(await wf(['apply', '--json', '-'], manifestFor(endpoint.url))),
  )
  if (hasPage) {
    await step(log, "the application's page", async () => {
      const page = await send(`${urlOf('app')}/`)
      if (!page.includes('<script')) throw new Error('The application has no page.')
    })
  }
  await step(log, 'one start through the public API to the endpoint, with an authentic token', async () => {
    await send(`${urlOf('gateway')}/v1/workflows/${workflowId}/start`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ context: 'order_id: A-1001' }),
      status: 202,
    })
    const payload = await waitUntil(
      () => endpoint.requests.find(({ text }) => text === JSON.stringify({ order_id: 'A-1001' })),
      { timeoutMs: DELIVERY_TIMEOUT_MS, message: 'the payload to arrive' },
    )
    const token = payload.headers['x-service-token']
    if (!(await checkServiceToken(token, SIGNING_SECRET)).ok)
      throw new Error('The token of the payload is not authentic.')
  })
  await step(log, 'every service ends with 0 on SIGTERM', async () => {
    for (const service of running.splice(0)) await stop(container, service)
  })
}

async function build(engine: ContainerEngine, nodeImage: string): Promise<void> {
  const { code, stdout, stderr } = await runToEnd(
    engine.build({ dockerfile: DOCKERFILE, context: ROOT, tag: TAG, nodeImage }),
  )
  if (code === 0) return
  const output = `${stdout}\n${stderr}`.trim().split('\n').slice(-25).join('\n')
  const advice = /pull|manifest unknown|registry|no such host|i\/o timeout/i.test(output)
    ? `\nIf the base image ${nodeImage} cannot be pulled here, load one (docker load, buildah pull) and name it: pnpm trial image --node-image NAME`
    : ''
  throw new Error(`${output}\nThe image was not built.${advice}`)
}

async function checkUser(container: Container): Promise<void> {
  const user = (await runProgram(container, ['id', '--user', '--name'])).trim()
  if (user !== 'node') throw new Error(`The programs run as ${user}.`)
  const search = 'find /app -path /app/node_modules/.cache -prune -o -writable -not -type l -print'
  const writable = (await runProgram(container, search.split(' '))).trim()
  if (writable !== '') throw new Error(`The user can write:\n${writable}`)
}

/** Runs a program from the image to its end, and resolves to its output. */
async function runProgram(
  container: Container,
  args: readonly string[],
  env?: Readonly<Record<string, string>>,
  input?: string,
): Promise<string> {
  const { code, stdout, stderr } = await runToEnd(container.run(args, env), input)
  if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}:\n${stdout}${stderr}`)
  return stdout
}

async function startService(
  container: Container,
  name: string,
  env: Readonly<Record<string, string>>,
  readyPort: string,
): Promise<StartedProcess> {
  // The shell's process becomes Node's.
  const script = ['sh', '-c', 'echo "pid $$"; exec node "$0"', `services/${name}/src/main.ts`]
  return await startProcess({
    ...container.run(script, env),
    readyWhen: { url: `http://127.0.0.1:${readyPort}/readyz` },
    timeoutMs: BOOT_TIMEOUT_MS,
  })
}

async function stop(container: Container, service: StartedProcess): Promise<void> {
  const pid = Number(/^pid (\d+)$/m.exec(service.stdout)?.[1])
  if (container.passesSignals) service.kill('SIGTERM')
  else process.kill(pid, 'SIGTERM')
  const deadline = setTimeout(() => service.kill('SIGKILL'), STOP_TIMEOUT_MS)
  const { code, signal } = await service.exited
  clearTimeout(deadline)
  if (code !== 0)
    throw new Error(`A service ended with ${signal ?? code}, not with 0:\n${service.stdout}${service.stderr}`)
}

function manifestFor(endpointUrl: string): string {
  return JSON.stringify({
    ...forwardManifest(randomUUID(), { description: 'An order came in. Send it to Order intake.' }),
    webhook_sources: [
      {
        name: 'Order intake',
        description: 'Takes every new order.',
        endpoint_url: endpointUrl,
        signing_secret: SIGNING_SECRET,
        example_request_body: { order_id: 'X-0000' },
      },
    ],
  })
}

function readApplied(json: string): { workflowId: string; key: string } {
  const { workflows, api_keys: keys } = JSON.parse(json) as {
    workflows: [{ id: string }]
    api_keys: [{ key: string }]
  }
  return { workflowId: workflows[0].id, key: keys[0].key }
}

async function defaultNodeImage(): Promise<string> {
  return /^ARG NODE_IMAGE=(\S+)/m.exec(await readFile(DOCKERFILE, 'utf8'))?.[1] ?? ''
}

async function step<Result>(log: Log, label: string, work: () => Promise<Result>): Promise<Result> {
  const startedMs = performance.now()
  const result = await work()
  log(`✓ ${label} · ${secondsSince(startedMs)} s`)
  return result
}
