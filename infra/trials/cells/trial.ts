import { setTimeout as pause } from 'node:timers/promises'
import { checkCallers, describeFindings, startCallers, untilAllEnded } from '../shared/callers.ts'
import { createCustomer, type Customer } from '../shared/customers.ts'
import { defineTrial, type Log, type TrialOptions } from '../shared/define-trial.ts'
import { secondsSince } from '../shared/figures.ts'
import { readNumber, startSystem, type System } from '../shared/system.ts'
import { copyOrganization, deleteMoved, untilQuiet } from './move-organization.ts'
import { type Router, startRouter } from './router.ts'

export const trial = defineTrial({
  summary: 'spreads organizations over two installations, and moves one under load',
  options: { seconds: ['how long the load lasts before and after the move', 10] },
  run: async ({ options, log }) => await runCells({ ...options, log }),
})

/**
 * Runs the trial on two cells, each a whole installation. Resolves to the broken promises. With one RabbitMQ for both,
 * a session whose message reaches the other cell waits for the sweep.
 */
export async function runCells({ seconds, log, ...servers }: TrialOptions & { seconds: number }): Promise<string[]> {
  await using stack = new AsyncDisposableStack()
  const startCell = async (): Promise<System> => {
    const cell = stack.use(await startSystem(servers))
    await Promise.all([cell.start('gateway'), cell.start('compact')])
    return cell
  }
  const [a, b] = await Promise.all([startCell(), startCell()])
  const router = stack.adopt(await startRouter(gatewayOf(a)), (started) => started.close())
  const startLife = async (name: string, cell: System) => {
    const customer = await createCustomer(cell, [`/${name}/orders`, `/${name}/audit`])
    router.route(prefixOf(customer), gatewayOf(cell))
    const load = { gatewayUrls: [router.url], name: `${name} `, callers: 4, pauseMs: [50, 300] } as const
    return { name, callers: startCallers(cell, customer, load), pool: cell.pool, receiver: cell.receiver }
  }
  const lives = [await startLife('Stays', a), await startLife('Moves', a), await startLife('Other', b)]
  const moving = lives[1]!
  await pause(seconds * 1_000)
  const violations = await move(router, moving.callers.customer, a, b, log)
  moving.pool = b.pool
  await pause(seconds * 1_000)
  await Promise.all(lives.map(({ callers }) => callers.stop()))
  await Promise.all([a, b].map((cell) => untilAllEnded(cell)))
  for (const life of lives) {
    const findings = await checkCallers(life, [life.callers])
    log(`${life.name}: ${describeFindings(findings)}`)
    violations.push(...findings.violations)
  }
  return violations
}

function gatewayOf(cell: System): string {
  return cell.urlsOf('gateway')[0] ?? ''
}

/** The public part of the customer's API key, by which the router finds its cell. */
function prefixOf({ apiKey }: Customer): string {
  return apiKey.slice(0, apiKey.lastIndexOf('_'))
}

/** Moves an organization, as docs/scale.md describes. Resolves to what was lost on the way. */
async function move(router: Router, customer: Customer, from: System, to: System, log: Log): Promise<string[]> {
  const { organizationId } = customer
  const beganMs = performance.now()
  const setSuspended = async ({ pool }: System, isSuspended: boolean): Promise<void> => {
    await pool.query('UPDATE organizations SET is_suspended = $2 WHERE id = $1', [organizationId, isSuspended])
  }
  await router.hold(prefixOf(customer))
  await setSuspended(from, true)
  await untilQuiet(from, organizationId)
  log(`quiet after ${secondsSince(beganMs)} s`)
  const copied = await copyOrganization(from, to, organizationId)
  await setSuspended(to, false)
  router.route(prefixOf(customer), gatewayOf(to))
  log(`moved after ${secondsSince(beganMs)} s: ${[...copied].map(([table, rows]) => `${rows} ${table}`).join(', ')}`)
  await deleteMoved(from, organizationId)
  const query = 'SELECT count(*)::int AS value FROM starts WHERE organization_id = $1'
  const left = await readNumber(from.pool, query, [organizationId])
  return left === 0 ? [] : [`${left} starts are left in the cell that the organization has left`]
}
