import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { waitUntil } from '@workflow-service/testkit'
import { checkRecord, FIELD, type Findings, type RecordToCheck, type RequestedStart } from './check-record.ts'
import { apiHeadersOf, countUnfinished, type Customer } from './customers.ts'
import { type Call, startLoad } from './load.ts'
import { createRandom } from './random.ts'
import type { Receiver } from './receiver.ts'
import type { System } from './system.ts'

/** Callers that request starts until they are stopped. */
export type Callers = ReturnType<typeof startCallers>

export interface CallersOptions {
  /** The gateways that callers use in turn. Default: all that have been started. */
  readonly gatewayUrls?: readonly string[]
  /** Begins the text of each start. Default: nothing. */
  readonly name?: string
  readonly callers: number
  /** The shortest and the longest pause of a caller between two requests. */
  readonly pauseMs: readonly [number, number]
  /** A caller begins a new session after so many starts. Default: never. */
  readonly startsPerSession?: number
  /** False: a failed request is not repeated, and counts. Default true. */
  readonly repeats?: boolean
  /** The same seed gives the same pauses. Default 1. */
  readonly seed?: number
}

/**
 * Unfinished runs per caller above which all callers wait: runs of one session follow each other, and would take hours
 * after the load.
 */
const MAX_BACKLOG_PER_CALLER = 25
/** Longer than the gateway takes for any response. */
const REQUEST_TIMEOUT_MS = 8_000

/**
 * Starts callers that request starts over the public API. Each caller uses one session and waits for each response, so
 * that starts are accepted in the order in which they are requested. It repeats most failed requests with the same
 * Idempotency-Key, and skips the others.
 */
export function startCallers(system: System, customer: Customer, options: CallersOptions) {
  const { name = '', callers, pauseMs, startsPerSession = Infinity, repeats = true, seed = 1 } = options
  const gatewayUrls = options.gatewayUrls ?? system.urlsOf('gateway')
  const random = createRandom(seed)
  const requested: RequestedStart[] = []
  const failures: string[] = []
  const sessions = Array.from({ length: callers }, () => ({ id: undefined as string | undefined, sequence: 0 }))
  const headers = apiHeadersOf(customer)
  let requests = 0
  const state = { isStopping: false, isBacklogTooLong: false }

  const request = async (start: RequestedStart, sessionId?: string, key?: string): Promise<boolean> => {
    const requestedAt = Date.now()
    const url = `${gatewayUrls[requests++ % gatewayUrls.length]}/v1/workflows/${customer.workflowId}/start`
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers: { ...headers, ...(key !== undefined && { 'idempotency-key': key }) },
        body: JSON.stringify({ context: `${FIELD}${start.text}`, session_id: sessionId }),
        signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
      })
      const body = (await response.json()) as { id: string; session_id: string }
      if (response.status === 202) {
        start.accepted = { startId: body.id, sessionId: body.session_id, requestedAt, answeredAt: Date.now() }
        return true
      }
      if (response.status !== 503 || !repeats) {
        failures.push(`"${start.text}" was answered ${response.status} ${JSON.stringify(body)}`)
      }
    } catch (error) {
      const { cause, message } = error as Error
      if (!repeats) failures.push(`"${start.text}": ${cause instanceof Error ? cause.message : message}`)
    }
    return false
  }

  const call = async (caller: number): Promise<void> => {
    const session = sessions[caller]!
    const { sequence } = session
    const text = `${name}caller ${caller} start ${sequence}`
    const start: RequestedStart = { text, accepted: undefined }
    session.sequence += 1
    requested.push(start)
    if (sequence % startsPerSession === 0) session.id = undefined
    const key = repeats && random.chance(0.8) ? randomUUID() : undefined
    let isAccepted = await request(start, session.id, key)
    if (key !== undefined) {
      while (!isAccepted && !state.isStopping) {
        await pause(200)
        isAccepted = await request(start, session.id, key)
      }
    }
    session.id ??= start.accepted?.sessionId
    while (state.isBacklogTooLong && !state.isStopping) await pause(200)
  }

  const load = startLoad({
    callers,
    pauseMs: () => random.between(...pauseMs),
    call: (_number, caller) => call(caller),
  })
  const watch = startLoad({
    spacingMs: 1_000,
    async call() {
      const count = await countUnfinished(system.pool, customer.organizationId).catch(() => 0)
      state.isBacklogTooLong = count > MAX_BACKLOG_PER_CALLER * callers
    },
  })
  return {
    customer,
    requested,
    /** Responses that no outage explains; with `repeats: false`, every request without a 202. */
    failures,
    /** Requests no further start, and resolves when the requests under way have ended. */
    stop: async () => {
      state.isStopping = true
      await Promise.all([load.stop(), watch.stop()])
    },
  }
}

/** The accepted starts whose payload arrived: when each was requested, and how long it took until then. */
export function timeStarts({ requested }: Pick<Callers, 'requested'>, { arrivals }: Receiver): Call[] {
  const arrivedAt = new Map(arrivals.toReversed().map(({ text, at }) => [text, at]))
  return requested.flatMap(({ text, accepted }) => {
    const at = arrivedAt.get(text)
    return accepted && at !== undefined ? [{ at: accepted.requestedAt, ms: at - accepted.requestedAt }] : []
  })
}

/** Waits until every run has ended. */
export async function untilAllEnded({ pool }: Pick<System, 'pool'>, timeoutMs = 240_000): Promise<void> {
  await waitUntil(async () => (await countUnfinished(pool)) === 0, {
    timeoutMs,
    intervalMs: 250,
    message: 'all runs to end',
  })
}

/** Compares what a customer's callers, its endpoint and the database recorded. Call it when all runs have ended. */
export async function checkCallers(
  { pool, receiver }: Pick<System, 'pool' | 'receiver'>,
  callers: readonly Pick<Callers, 'customer' | 'requested' | 'failures'>[],
  mayFailWith?: RecordToCheck['mayFailWith'],
): Promise<Findings> {
  const { organizationId, paths } = callers[0]!.customer
  const requested = callers.flatMap((each) => each.requested)
  const arrivals = receiver.arrivals.filter(({ path }) => paths.includes(path))
  const findings = await checkRecord(pool, { organizationId, paths, requested, arrivals, mayFailWith })
  return { ...findings, violations: [...callers.flatMap(({ failures }) => failures), ...findings.violations] }
}

/** One line for a trial's report. */
export function describeFindings(findings: Findings): string {
  const { accepted, succeeded, outcomeUnknown, payloads, retried, violations } = findings
  return (
    `${accepted} starts answered 202, ${succeeded} succeeded, ${outcomeUnknown} with an unknown outcome, ` +
    `${payloads} payloads, ${retried} runs attempted again; ${violations.length} violations`
  )
}
