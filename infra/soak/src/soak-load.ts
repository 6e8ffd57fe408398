import { setTimeout as pause } from 'node:timers/promises'
import { createRandom } from '../../../services/runner/test/chaos/random.ts'
import { type Load, startLoad } from '../../../services/runner/test/chaos/load.ts'
import type { SoakCustomer, SoakSystem } from './soak-system.ts'

/** One timed request. */
export interface TimedRequest {
  readonly kind: 'api' | 'app' | 'commit'
  /** In ms since 1970. */
  readonly at: number
  /** Undefined when it failed. */
  readonly ms: number | undefined
}

/** The load of all customers. */
export interface SoakLoad {
  readonly starts: readonly { readonly customer: SoakCustomer; readonly load: Load }[]
  readonly requests: readonly TimedRequest[]
  /** Resolves when the requests under way have ended. */
  stop(): Promise<void>
}

/** Callers that request one start per second together. */
const CALLERS_PER_RATE = 2
const STARTS_PER_SESSION = 20
const API_READ_INTERVAL_MS = 500
const APP_READ_INTERVAL_MS = 2_000
const COMMIT_INTERVAL_MS = 1_000
const REQUEST_TIMEOUT_MS = 8_000

/** Starts the load: `rate` starts per second, two reads of the public API, half a read of the application and one bare commit. */
export async function startSoakLoad(system: SoakSystem, options: { rate: number; seed: number }): Promise<SoakLoad> {
  const { rate, seed } = options
  const { customers, db, gatewayUrls, steady } = system
  await db.pool.query('CREATE TABLE soak_commits (at timestamptz NOT NULL)')
  const requests: TimedRequest[] = []
  const stopping = new AbortController()
  const unfinished = cached(() => countWaitingStarts(system), 2_000)

  const starts = customers.map((customer, index) => {
    const callers = Math.max(1, Math.round(rate * customer.share * CALLERS_PER_RATE))
    const meanPauseMs = (1_000 * callers) / (rate * customer.share)
    const load = startLoad({
      gatewayUrls,
      workflowId: customer.workflowId,
      apiKey: customer.apiKey,
      name: `${customer.name} `,
      callers,
      pauseMs: [0.5 * meanPauseMs, 1.5 * meanPauseMs],
      startsPerSession: STARTS_PER_SESSION,
      random: createRandom(seed + index),
      countUnfinished: async () => await unfinished(customer.organizationId),
    })
    return { customer, load }
  })

  const timed = async (kind: TimedRequest['kind'], run: () => Promise<unknown>): Promise<void> => {
    const at = Date.now()
    const startedAt = performance.now()
    const isDone = await run().then(
      () => true,
      () => false,
    )
    requests.push({ kind, at, ms: isDone ? performance.now() - startedAt : undefined })
  }
  const repeat = async (intervalMs: number, run: (round: number) => Promise<void>): Promise<void> => {
    for (let round = 0; !stopping.signal.aborted; round++) {
      const nextAt = performance.now() + intervalMs
      await run(round)
      await pause(Math.max(0, nextAt - performance.now()))
    }
  }
  const loops = [
    repeat(API_READ_INTERVAL_MS, async (round) => {
      const { workflowId, apiKey } = customers[round % customers.length]!
      const path = ['/v1/organization', '/v1/workflows?limit=25', `/v1/workflows/${workflowId}`][round % 3]!
      await timed('api', () => read(steady.gateway.url + path, { authorization: `Bearer ${apiKey}` }))
    }),
    repeat(APP_READ_INTERVAL_MS, async (round) => {
      const { workflowId, sourceId, cookie } = customers[round % customers.length]!
      const lists = [
        'runs',
        'runs?status=failed',
        `runs?workflow_id=${workflowId}`,
        `webhook-sources/${sourceId}/deliveries`,
      ]
      await timed('app', () =>
        read(`${steady.app.url}/app/${lists[Math.floor(round / customers.length) % lists.length]}`, { cookie }),
      )
    }),
    repeat(COMMIT_INTERVAL_MS, async () => {
      await timed('commit', () => db.pool.query('INSERT INTO soak_commits VALUES (now())'))
    }),
  ]
  return {
    starts,
    requests,
    async stop() {
      stopping.abort()
      await Promise.all([...loops, ...starts.map(({ load }) => load.stop())])
    },
  }
}

async function read(url: string, headers: Record<string, string>): Promise<void> {
  const response = await fetch(url, { headers, signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS) })
  const text = await response.text()
  if (response.status !== 200) throw new Error(`${url} answered ${response.status}: ${text}`)
}

/** The number of starts of each organization that have not ended. */
async function countWaitingStarts({ db }: SoakSystem): Promise<Map<string, number>> {
  const { rows } = await db.pool.query<{ id: string; count: number }>(
    `SELECT organization_id AS id, sum(last_start_number - last_finished_number)::int AS count
     FROM sessions WHERE last_finished_number < last_start_number GROUP BY organization_id`,
  )
  return new Map(rows.map(({ id, count }) => [id, count]))
}

/** Several customers' loads ask each second; one query answers all of them. */
function cached(query: () => Promise<Map<string, number>>, maxAgeMs: number): (id: string) => Promise<number> {
  let counted: Promise<Map<string, number>> | undefined
  let countedAt = 0
  return async (id) => {
    if (!counted || performance.now() - countedAt > maxAgeMs) {
      counted = query()
      countedAt = performance.now()
    }
    return (await counted).get(id) ?? 0
  }
}
