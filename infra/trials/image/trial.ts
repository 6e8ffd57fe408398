import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { runProgram, startCustomerEndpoint, type StartedProcess, waitUntil } from '@workflow-service/testkit'
import { checkServiceToken } from '@workflow-service/webhook-token'
import { createCustomer, SIGNING_SECRET, startWorkflow } from '../shared/customers.ts'
import { defineTrial, type Log, type TrialOptions } from '../shared/define-trial.ts'
import { secondsSince } from '../shared/figures.ts'
import { send } from '../shared/load.ts'
import { startSystem } from '../shared/system.ts'
import { type CommandLine, type Container, type ContainerEngine, findContainerEngine } from './container-engine.ts'

const ROOT = join(import.meta.dirname, '../../..')
const DOCKERFILE = join(ROOT, 'infra/Dockerfile')
const TAG = 'localhost/workflow-service-trial'
const DELIVERY_TIMEOUT_MS = 60_000
const STOP_TIMEOUT_MS = 60_000

export const trial = defineTrial({
  summary: 'builds the image, runs the services from it, and sends one start through',
  options: { 'node-image': ["the base image; by default the one that the Dockerfile's NODE_IMAGE names", ''] },
  async run({ options: { 'node-image': given }, log }) {
    try {
      const nodeImage = given || (await defaultNodeImage())
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

/** Runs `wf migrate` and the four services in the container, and sends one start through. @throws Error */
export async function tryService(
  container: Container,
  { hasPage, log, rabbitMq }: TrialOptions & { hasPage: boolean },
): Promise<void> {
  await using stack = new AsyncDisposableStack()
  const endpoint = stack.adopt(await startCustomerEndpoint(), async (server) => await server.close())
  const wf = ['node', 'packages/cli/src/main.ts']
  const system = stack.use(
    await startSystem({
      rabbitMq,
      migrateBy: async (DATABASE_URL) =>
        await step(log, 'wf migrate', async () => await runToEnd(container.run([...wf, 'migrate'], { DATABASE_URL }))),
      // The shell's process becomes Node's.
      commandOf: (name, env) =>
        container.run(['sh', '-c', 'echo "pid $$"; exec node "$0"', `services/${name}/src/main.ts`], env),
    }),
  )
  for (const name of ['dispatcher', 'runner', 'gateway', 'app'] as const)
    await step(log, `${name} is ready`, async () => await system.start(name))
  const [app = ''] = system.urlsOf('app')
  const [gateway = ''] = system.urlsOf('gateway')
  const customer = await createCustomer(system, [''], endpoint.url)
  if (hasPage) {
    await step(log, "the application's page", async () => {
      if (!(await send(`${app}/`)).includes('<script')) throw new Error('The application has no page.')
    })
  }
  await step(log, 'one start through the public API to the endpoint, with an authentic token', async () => {
    await startWorkflow(gateway, customer, 'A-1001')
    const payload = await waitUntil(
      () => endpoint.requests.find(({ text }) => text === JSON.stringify({ text: 'A-1001' })),
      { timeoutMs: DELIVERY_TIMEOUT_MS, message: 'the payload to arrive' },
    )
    const token = payload.headers['x-service-token']
    if (!(await checkServiceToken(token, SIGNING_SECRET)).ok)
      throw new Error('The token of the payload is not authentic.')
  })
  await step(log, 'every service ends with 0 on SIGTERM', async () => {
    for (const service of system.services) await stop(container, service.process)
  })
}

const runToEnd = async ({ command, args }: CommandLine): Promise<string> => await runProgram(command, args)

async function build(engine: ContainerEngine, nodeImage: string): Promise<void> {
  try {
    await runToEnd(engine.build({ dockerfile: DOCKERFILE, context: ROOT, tag: TAG, nodeImage }))
  } catch (error) {
    const output = (error as Error).message.trim().split('\n').slice(-25).join('\n')
    const advice = /pull|manifest unknown|registry|no such host|i\/o timeout/i.test(output)
      ? `\nIf the base image ${nodeImage} cannot be pulled here, load one (docker load, buildah pull) and name it: pnpm trial image --node-image NAME`
      : ''
    throw new Error(`${output}\nThe image was not built.${advice}`, { cause: error })
  }
}

async function checkUser(container: Container): Promise<void> {
  const user = (await runToEnd(container.run(['id', '--user', '--name']))).trim()
  if (user !== 'node') throw new Error(`The programs run as ${user}.`)
  const search = 'find /app -path /app/node_modules/.cache -prune -o -writable -not -type l -print'
  const writable = (await runToEnd(container.run(search.split(' ')))).trim()
  if (writable !== '') throw new Error(`The user can write:\n${writable}`)
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

async function defaultNodeImage(): Promise<string> {
  return /^ARG NODE_IMAGE=(\S+)/m.exec(await readFile(DOCKERFILE, 'utf8'))?.[1] ?? ''
}

async function step<Result>(log: Log, label: string, work: () => Promise<Result>): Promise<Result> {
  const startedMs = performance.now()
  const result = await work()
  log(`✓ ${label} · ${secondsSince(startedMs)} s`)
  return result
}
