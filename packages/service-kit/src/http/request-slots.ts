import type { ServerResponse } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { createInFlightLimiter, type LimitReached, type ReleaseSlot } from '../in-flight-limiter.ts'
import { createKeyedMutex } from '../keyed-mutex.ts'
import { Gauge, type Registry } from '../metrics.ts'
import { serviceUnavailable } from './errors.ts'
import { onceClosed, responseState } from './response-state.ts'

/** How many requests may be in flight. */
export interface RequestSlotsOptions<Principal> {
  readonly total: number
  readonly perKey: number
  /** What shares the slots of `perKey`, such as an organization. */
  readonly keyOf: (principal: Principal) => string
  /**
   * Callers with slots of their own, as many in total: those who are not signed in take none of the slots of the
   * others.
   */
  readonly strangers?: { readonly includes: (principal: Principal) => boolean; readonly perKey: number }
  /** Gets the gauge `http_request_slots_in_use`. */
  readonly metrics: Registry
}

/** The slots of requests. */
export type RequestSlots<Principal> = ReturnType<typeof createRequestSlots<Principal>>

/**
 * Creates slots for requests whose bodies are being read, and as many for requests that are being answered: bodies that
 * arrive byte by byte take no slot from requests that have arrived. Two keys that take all they may leave a quarter to
 * others. Waiting for slots is of no use: callers that wait would take as much memory.
 */
export function createRequestSlots<Principal>({
  total,
  perKey,
  keyOf,
  strangers,
  metrics,
}: RequestSlotsOptions<Principal>) {
  const create = (most: number) => {
    // Callers decide how long they keep one: by a body that does not arrive, or an answer that they do not read.
    const leavesFree = most < total
    const limits = { total, perKey: most, leavesFree, waitMs: 0, maxWaiting: 0, maxWaitingPerKey: 0 }
    return { reading: createInFlightLimiter(limits), answering: createInFlightLimiter(limits) }
  }
  const [known, unknown] = [create(perKey), create(strangers?.perKey ?? perKey)]
  const stagesOf = (principal: Principal) => (strangers?.includes(principal) ? unknown : known)
  const waitForTurn = createFairQueue()
  const gauge: Gauge<'stage'> = new Gauge({
    name: 'http_request_slots_in_use',
    help: 'Slots of requests whose bodies are being read (reading), and of those being answered (answering).',
    labelNames: ['stage'],
    registers: [metrics],
    collect: () => {
      for (const stage of ['reading', 'answering'] as const)
        gauge.set({ stage }, known[stage].inFlight + unknown[stage].inFlight)
    },
  })
  return {
    /**
     * Reads a body. `waitForTurn` resolves once per turn of the event loop for the requests of one key. The slot is
     * free once the body has been read, or the request has been answered or cut off: `read` need not settle then.
     * @throws ApiError 503 when there is no free slot.
     */
    async whileReading<Body>(
      res: ServerResponse,
      principal: Principal,
      read: (waitForTurn: () => Promise<void>) => Promise<Body>,
    ): Promise<Body> {
      const key = keyOf(principal)
      const releaseSlot = orRefused(stagesOf(principal).reading.tryAcquire(key))
      // Node does not tell the reader of a body that its request has been answered, such as after a time-out.
      onceClosed(res, releaseSlot)
      return await read(() => waitForTurn(key)).finally(releaseSlot)
    },
    /**
     * Answers a request whose body has been read. The slot is free once the answer has been sent, or its stream has
     * begun.
     * @throws ApiError 503 when there is no free slot.
     */
    whileAnswering(
      res: ServerResponse,
      principal: Principal,
      answer: () => void | Promise<void>,
    ): void | Promise<void> {
      const key = keyOf(principal)
      const releaseSlot = orRefused(stagesOf(principal).answering.tryAcquire(key))
      const state = responseState(res)
      state.key = key
      // Not before the handler has ended: a caller that disconnects leaves its work behind.
      const release = (): void => {
        if (state.isStream) releaseSlot()
        else onceClosed(res, releaseSlot)
      }
      let answered: void | Promise<void> = undefined
      try {
        answered = answer()
      } finally {
        if (!(answered instanceof Promise)) release()
      }
      return answered instanceof Promise ? answered.finally(release) : answered
    },
  }
}

/**
 * Returns a function that resolves in the order of its calls, for each key at most once in the time that `wait` takes:
 * by default a turn of the event loop.
 */
export function createFairQueue(wait: () => Promise<void> = () => nextTurn()): (key: string) => Promise<void> {
  const runExclusive = createKeyedMutex()
  return (key) => runExclusive(key, wait)
}

/** @throws ApiError 503 if a limit was reached in place of a slot. */
export function orRefused(slot: ReleaseSlot | LimitReached): ReleaseSlot {
  if (typeof slot === 'function') return slot
  const whose = slot === 'key_limit' ? 'Too many of your requests' : 'Too many requests'
  throw serviceUnavailable(`${whose} are under way; try again in a moment.`)
}
