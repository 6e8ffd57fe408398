import { setTimeout as pause } from 'node:timers/promises'
import { type PrivateRabbitMq, startRabbitMq } from '@workflow-service/testkit'
import { checkCallers, describeFindings, startCallers, untilAllEnded } from '../shared/callers.ts'
import { createCustomer, type Customer } from '../shared/customers.ts'
import { defineTrial, type Log, positive } from '../shared/define-trial.ts'
import { secondsSince } from '../shared/figures.ts'
import { createRandom } from '../shared/random.ts'
import { startReceiver } from '../shared/receiver.ts'
import { type Service, type System, withSystem } from '../shared/system.ts'
import { type CellDatabase, copyOrganization, deleteMoved, untilQuiet } from './move-organization.ts'
import { type Router, startRouter } from './router.ts'

export const trial = defineTrial({
  name: 'cells',
  summary: 'spreads organizations over two installations, and moves one under load',
  options: { seconds: positive('how long the load lasts before and after the move', 10) },
  async run({ options: { seconds }, log }) {
    return await runCells({ seconds, log })
  },
})

export interface CellsOptions {
  readonly seconds: number
  readonly log: Log
  /** Default: starts two, and stops them. A session whose message reaches the other cell waits for the sweep. */
  readonly rabbitMq?: Pick<PrivateRabbitMq, 'url' | 'managementUrl' | 'stop'>
}

/** A whole installation. */
interface Cell {
  readonly system: System
  readonly gateway: Service
  readonly dispatcher: Service
  readonly database: CellDatabase
}

/** Runs the trial. Resolves to the broken promises. */
export async function runCells({ seconds, log, rabbitMq }: CellsOptions): Promise<string[]> {
  const start = async (): Promise<Pick<PrivateRabbitMq, 'url' | 'managementUrl' | 'stop'>> =>
    rabbitMq ?? (await startRabbitMq())
  return await withSystem({ rabbitMq: await start() }, async (first) =>
    withSystem({ rabbitMq: await start() }, async (second) => {
      const [a, b] = await Promise.all([startCell(first), startCell(second)])
      return await moveUnderLoad(a, b, { seconds, log })
    }),
  )
}

async function startCell(system: System): Promise<Cell> {
  const dispatcher = await system.start('dispatcher')
  const [gateway] = await Promise.all([system.start('gateway'), system.start('runner')])
  return { system, gateway, dispatcher, database: { pool: system.pool, url: system.postgres.url } }
}

async function moveUnderLoad(a: Cell, b: Cell, { seconds, log }: CellsOptions): Promise<string[]> {
  const receiver = await startReceiver()
  const router = await startRouter(a.gateway.url)
  const startLife = async (name: string, cell: Cell) => {
    const paths = [`/${name}/orders`, `/${name}/audit`]
    const customer = await createCustomer(cell.system, cell.dispatcher, { endpointUrl: receiver.url, paths })
    router.route(prefixOf(customer), cell.gateway.url)
    const callers = startCallers({
      gatewayUrls: [router.url],
      customer,
      name: `${name} `,
      callers: 4,
      pauseMs: [50, 300],
      random: createRandom(1),
      pool: cell.system.pool,
    })
    return { name, customer, callers, cell }
  }
  try {
    const lives = [await startLife('Stays', a), await startLife('Moves', a), await startLife('Other', b)]
    const moving = lives[1]!
    await pause(seconds * 1_000)
    const violations = await move(router, moving.customer, a, b, log)
    moving.cell = b
    await pause(seconds * 1_000)
    await Promise.all(lives.map(({ callers }) => callers.stop()))
    await Promise.all([a, b].map(({ system }) => untilAllEnded(system.pool)))
    for (const { name, callers, cell } of lives) {
      const findings = await checkCallers(cell.system.pool, callers, receiver)
      log(`${name}: ${describeFindings(findings)}`)
      violations.push(...findings.violations)
    }
    return violations
  } finally {
    await router.close()
    await receiver.close()
  }
}

/** The public part of the customer's API key, by which the router finds its cell. */
function prefixOf({ apiKey }: Customer): string {
  return apiKey.slice(0, apiKey.lastIndexOf('_'))
}

/** Moves an organization, as docs/scale.md describes. Resolves to what was lost on the way. */
async function move(
  router: Router,
  customer: Customer,
  { database: from }: Cell,
  { database: to, gateway }: Cell,
  log: Log,
): Promise<string[]> {
  const { organizationId } = customer
  const beganMs = performance.now()
  const setSuspended = async ({ pool }: CellDatabase, isSuspended: boolean): Promise<void> => {
    await pool.query('UPDATE organizations SET is_suspended = $2 WHERE id = $1', [organizationId, isSuspended])
  }
  await router.hold(prefixOf(customer))
  await setSuspended(from, true)
  await untilQuiet(from, organizationId)
  log(`quiet after ${secondsSince(beganMs)} s`)
  const copied = await copyOrganization(from, to, organizationId)
  await setSuspended(to, false)
  router.route(prefixOf(customer), gateway.url)
  log(`moved after ${secondsSince(beganMs)} s: ${[...copied].map(([table, rows]) => `${rows} ${table}`).join(', ')}`)
  await deleteMoved(from, organizationId)
  const { rows } = await from.pool.query<{ left: number }>(
    'SELECT count(*)::int AS left FROM starts WHERE organization_id = $1',
    [organizationId],
  )
  return rows[0]?.left === 0 ? [] : [`${rows[0]?.left} starts are left in the cell that the organization has left`]
}
