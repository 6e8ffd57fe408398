import { setTimeout as pause } from 'node:timers/promises'
import { checkCallers, describeFindings, startCallers, untilAllEnded } from '../shared/callers.ts'
import { createCustomer, type Customer } from '../shared/customers.ts'
import { defineTrial, type Log } from '../shared/define-trial.ts'
import { secondsSince } from '../shared/figures.ts'
import { openUnchecked, startSystem, type System, type SystemOptions } from '../shared/system.ts'
import { type CellDatabase, copyOrganization, deleteMoved, untilQuiet } from './move-organization.ts'
import { type Router, startRouter } from './router.ts'

export const trial = defineTrial({
  name: 'cells',
  summary: 'spreads organizations over two installations, and moves one under load',
  options: { seconds: ['how long the load lasts before and after the move', 10] },
  async run({ options: { seconds }, log }) {
    return await runCells({ seconds, log })
  },
})

export interface CellsOptions {
  readonly seconds: number
  readonly log: Log
  /** Default: starts two, and stops them. A session whose message reaches the other cell waits for the sweep. */
  readonly rabbitMq?: SystemOptions['rabbitMq']
}

/** A whole installation. */
interface Cell {
  readonly system: System
  readonly database: CellDatabase
}

/** Runs the trial. Resolves to the broken promises. */
export async function runCells({ seconds, log, rabbitMq }: CellsOptions): Promise<string[]> {
  await using stack = new AsyncDisposableStack()
  const startCell = async (): Promise<Cell> => {
    const system = stack.use(await startSystem({ rabbitMq }))
    await system.start('dispatcher')
    await Promise.all([system.start('gateway'), system.start('runner')])
    const unchecked = stack.adopt(openUnchecked(system.postgres), (pool) => pool.end())
    return { system, database: { pool: system.pool, unchecked, url: system.postgres.url } }
  }
  const [a, b] = await Promise.all([startCell(), startCell()])
  const router = stack.adopt(await startRouter(gatewayOf(a)), (started) => started.close())
  const startLife = async (name: string, cell: Cell) => {
    const customer = await createCustomer(cell.system, [`/${name}/orders`, `/${name}/audit`])
    router.route(prefixOf(customer), gatewayOf(cell))
    const load = { gatewayUrls: [router.url], name: `${name} `, callers: 4, pauseMs: [50, 300] } as const
    return { name, callers: startCallers(cell.system, customer, load), cell, receiver: cell.system.receiver }
  }
  const lives = [await startLife('Stays', a), await startLife('Moves', a), await startLife('Other', b)]
  const moving = lives[1]!
  await pause(seconds * 1_000)
  const violations = await move(router, moving.callers.customer, a, b, log)
  moving.cell = b
  await pause(seconds * 1_000)
  await Promise.all(lives.map(({ callers }) => callers.stop()))
  await Promise.all([a, b].map(({ system }) => untilAllEnded(system)))
  for (const { name, callers, cell, receiver } of lives) {
    const findings = await checkCallers({ pool: cell.system.pool, receiver }, [callers])
    log(`${name}: ${describeFindings(findings)}`)
    violations.push(...findings.violations)
  }
  return violations
}

function gatewayOf({ system }: Cell): string {
  return system.urlsOf('gateway')[0] ?? ''
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
  target: Cell,
  log: Log,
): Promise<string[]> {
  const { organizationId } = customer
  const to = target.database
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
  router.route(prefixOf(customer), gatewayOf(target))
  log(`moved after ${secondsSince(beganMs)} s: ${[...copied].map(([table, rows]) => `${rows} ${table}`).join(', ')}`)
  await deleteMoved(from, organizationId)
  const { rows } = await from.pool.query<{ left: number }>(
    'SELECT count(*)::int AS left FROM starts WHERE organization_id = $1',
    [organizationId],
  )
  return rows[0]?.left === 0 ? [] : [`${rows[0]?.left} starts are left in the cell that the organization has left`]
}
