import { setTimeout as pause } from 'node:timers/promises'
import { waitUntil } from '@workflow-service/testkit'
import { WorkflowClient } from '../../../packages/client/src/index.ts'
import { FIELD } from '../shared/check-record.ts'
import { apiHeadersOf, createCustomer, type Customer } from '../shared/customers.ts'
import { defineTrial, type Log } from '../shared/define-trial.ts'
import { send } from '../shared/load.ts'
import { residentMiB } from '../shared/process-usage.ts'
import { hash } from '../shared/receiver.ts'
import { queueStarts } from '../shared/seed.ts'
import { type Service, startSystem, type System } from '../shared/system.ts'

export const trial = defineTrial({
  name: 'waits',
  summary: 'starts runs and waits for each while gateway and runner restart; measures requests that wait',
  options: {
    runs: ['runs to start and wait for', 1_000],
    waiting: ['requests that wait at the same time', 5_000],
  },
  async run({ options: { runs, waiting }, log }) {
    await using system = await startSystem({ answer: ({ text }) => ({ status: isRejected(text) ? 500 : 204 }) })
    await system.start('dispatcher')
    const [gateway, runner] = await Promise.all([
      system.start('gateway', { openFiles: 20_000 }),
      system.start('runner'),
    ])
    const customer = await createCustomer(system, ['/orders'])
    const wrong = await followRuns({ log, system, customer, gateway, runner }, runs)
    const { arrivals } = system.receiver
    const twice = arrivals.length - new Set(arrivals.map(({ text }) => text)).size
    await runner.kill('SIGTERM')
    const broken = await measureWaiting({ log, system, customer, gateway, runner }, waiting)
    return [...wrong, ...(twice > 0 ? [`${twice} payloads arrived twice`] : []), ...broken]
  },
})

interface Waits {
  readonly log: Log
  readonly system: System
  readonly customer: Customer
  readonly gateway: Service
  readonly runner: Service
}

/** Every fifth payload is rejected, so that its run fails. */
const isRejected = (text: string): boolean => hash(text) % 5 === 0

/** A program that starts runs and waits for each. The gateway restarts after a third of them, the runner after two. */
async function followRuns({ log, customer, gateway, runner }: Waits, runs: number): Promise<string[]> {
  const client = new WorkflowClient({
    apiKey: customer.apiKey,
    baseUrl: gateway.url,
    maxRetries: 30,
    totalTimeoutMs: 180_000,
  })
  const broken: string[] = []
  let ended = 0
  const texts = Array.from({ length: runs }, (_, index) => `run ${index}`).values()
  const follow = async (): Promise<void> => {
    for (const text of texts) {
      const started = await client.workflows.start(customer.workflowId, { context: `${FIELD}${text}` })
      const run = await client.runs.wait(started.id)
      const expected = isRejected(text) ? 'failed delivery_rejected rejected' : 'succeeded  accepted'
      const found = `${run.status} ${run.error?.code ?? ''} ${run.deliveries.map(({ outcome }) => outcome).join()}`
      if (found !== expected) broken.push(`${text}: ${found}, not ${expected}`)
      ended += 1
    }
  }
  const beganMs = performance.now()
  const following = Promise.all(Array.from({ length: 50 }, follow))
  const restarts = async (): Promise<void> => {
    for (const [service, share] of [
      [gateway, 1 / 3],
      [runner, 2 / 3],
    ] as const) {
      await waitUntil(() => ended >= runs * share, { timeoutMs: 180_000 })
      await service.kill(service === gateway ? 'SIGTERM' : 'SIGKILL')
      await service.restart()
      log(`${service.name} restarted, with ${ended} of ${runs} runs followed to their end`)
    }
  }
  await Promise.all([following, restarts()])
  log(
    `${ended} runs started and waited for in ${Math.round((performance.now() - beganMs) / 1_000)} s, ${broken.length} wrong`,
  )
  return broken
}

/** Most memory of all waiting requests, and most statements a second for all of them together. */
const LIMIT_MIB = 150
const LIMIT_STATEMENTS = 50
const RUNS = 500
const GROUP = 250
const SECONDS = 5

async function measureWaiting({ log, system, customer, gateway }: Waits, waiting: number): Promise<string[]> {
  const request = { headers: apiHeadersOf(customer), timeoutMs: 60_000 }
  await queueStarts(system, customer, RUNS)
  const { rows } = await system.pool.query<{ id: string }>(`SELECT id FROM starts WHERE status = 'queued'`)
  const ids = rows.map(({ id }) => id)
  // A process that has served nothing else.
  await gateway.kill('SIGTERM')
  await gateway.restart()
  const before = await residentMiB(gateway.process.pid)
  const size = async (): Promise<number> => {
    const metrics = await (await fetch(`${gateway.metricsUrl}/metrics`)).text()
    return Number(/^gateway_run_waits(?:\{.*\})? (\d+)/m.exec(metrics)?.[1])
  }
  const answers: Promise<string>[] = []
  // In groups: more requests at once than the gateway has slots would be answered 503.
  while (answers.length < waiting) {
    for (let index = 0; index < GROUP && answers.length < waiting; index += 1) {
      answers.push(send(`${gateway.url}/v1/runs/${ids[answers.length % RUNS]}?wait=30`, request))
    }
    await waitUntil(async () => (await size()) === answers.length, {
      timeoutMs: 20_000,
      message: 'all requests to wait',
    })
  }
  const statementsBefore = await countStatements(system)
  await pause(SECONDS * 1_000)
  const statements = ((await countStatements(system)) - statementsBefore) / SECONDS
  const memory = (await residentMiB(gateway.process.pid)) - before
  await system.pool.query(`UPDATE starts SET status = 'succeeded', finished_at = now() WHERE id = ANY($1::uuid[])`, [
    ids,
  ])
  const statuses = (await Promise.all(answers)).map((text) => (JSON.parse(text) as { status?: string }).status)
  const wrong = statuses.filter((status) => status !== 'succeeded').length
  log(
    `${waiting} requests waiting take ${memory.toFixed(0)} MiB, beside ${before.toFixed(0)}; ${statements} statements a second in all; ${wrong} answers wrong`,
  )
  return [
    ...(memory > LIMIT_MIB ? [`they take ${memory.toFixed(0)} MiB, more than ${LIMIT_MIB}`] : []),
    ...(statements > LIMIT_STATEMENTS ? [`${statements} statements a second, more than ${LIMIT_STATEMENTS}`] : []),
    ...(wrong > 0 ? [`${wrong} of ${waiting} requests did not see the end of their run`] : []),
  ]
}

/** Transactions of the database so far, which are statements here; those of this trial included. */
async function countStatements({ pool }: System): Promise<number> {
  const { rows } = await pool.query<{ count: string }>(
    'SELECT xact_commit AS count FROM pg_stat_database WHERE datname = current_database()',
  )
  return Number(rows[0]?.count)
}
