import type { ServerResponse } from 'node:http'
import { InFlightLimiter, type LimitReached, type ReleaseSlot } from '../in-flight-limiter.ts'
import { Gauge, type Registry } from '../metrics.ts'
import { createTurns } from '../turns.ts'
import { type ApiError, serviceUnavailable } from './errors.ts'
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
 * others; where many have taken all slots for bodies, the one with the most gives way. Waiting for slots is of no use:
 * callers that wait would take as much memory.
 */
export function createRequestSlots<Principal>({
  total,
  perKey,
  keyOf,
  strangers,
  metrics,
}: RequestSlotsOptions<Principal>) {
  const create = (most: number) => {
    // Callers decide how long they keep one: by a body that does not arrive, or a response that they do not read.
    const leavesFree = most < total
    const limits = { total, perKey: most, leavesFree, waitMs: 0, maxWaiting: 0, maxWaitingPerKey: 0 }
    const bodies: Bodies = new Map()
    return { reading: new InFlightLimiter(limits), bodies, answering: new InFlightLimiter(limits) }
  }
  const [known, unknown] = [create(perKey), create(strangers?.perKey ?? perKey)]
  const stagesOf = (principal: Principal) => (strangers?.includes(principal) ? unknown : known)
  const waitForTurn = createTurns()
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
     * @throws ApiError 503 when there is no free slot, or when the slot is given to another key.
     */
    async whileReading<Body>(
      res: ServerResponse,
      principal: Principal,
      read: (waitForTurn: () => Promise<void>) => Promise<Body>,
    ): Promise<Body> {
      const key = keyOf(principal)
      const { reading, bodies } = stagesOf(principal)
      let slot = reading.tryAcquire(key)
      if (slot === 'total_limit') {
        // More than one if the key has some already: it leaves as many free.
        while (typeof slot === 'string' && giveWay(bodies, key)) slot = reading.tryAcquire(key)
      }
      if (typeof slot === 'string') throw tooManyRequests(slot)
      const { promise, resolve, reject } = Promise.withResolvers<Body>()
      const release = addBody(bodies, key, slot, reject)
      // Node does not tell the reader of a body that its request has been answered, such as after a time-out.
      onceClosed(res, release)
      read(() => waitForTurn(key)).then(resolve, reject)
      return await promise.finally(release)
    },
    /**
     * Answers a request whose body has been read. The slot is free once the response has been sent, or its stream has
     * begun.
     * @throws ApiError 503 when there is no free slot.
     */
    whileAnswering(
      res: ServerResponse,
      principal: Principal,
      respond: () => void | Promise<void>,
    ): void | Promise<void> {
      const key = keyOf(principal)
      const slot = stagesOf(principal).answering.tryAcquire(key)
      if (typeof slot === 'string') throw tooManyRequests(slot)
      const state = responseState(res)
      state.key = key
      // Not before the handler has ended: a caller that disconnects leaves its work behind.
      const release = (): void => {
        if (state.isStream) slot()
        else onceClosed(res, slot)
      }
      let answered: void | Promise<void> = undefined
      try {
        answered = respond()
      } finally {
        if (!(answered instanceof Promise)) release()
      }
      return answered instanceof Promise ? answered.finally(release) : answered
    },
  }
}

/** What refuses each of the bodies that are being read, by key, in the order in which they began to arrive. */
type Bodies = Map<string, Set<() => void>>

/** Adds a body, and returns what removes it and frees its slot. */
function addBody(bodies: Bodies, key: string, releaseSlot: ReleaseSlot, reject: (error: Error) => void): () => void {
  const ofKey = bodies.get(key) ?? new Set()
  const refuse = (): void => {
    release()
    reject(serviceUnavailable('Too many requests are under way, and this one took long; try again in a moment.'))
  }
  const release = (): void => {
    releaseSlot()
    if (ofKey.delete(refuse) && ofKey.size === 0) bodies.delete(key)
  }
  bodies.set(key, ofKey.add(refuse))
  return release
}

/**
 * Refuses the body that arrives for longest, of the key with the most, if that has more than this key. One that arrives
 * in a moment is rarely it: callers that hold bodies back lose theirs. Says whether there was one.
 */
function giveWay(bodies: Bodies, key: string): boolean {
  let most: ReadonlySet<() => void> | undefined
  let count = bodies.get(key)?.size ?? 0
  for (const ofKey of bodies.values()) if (ofKey.size > count) [most, count] = [ofKey, ofKey.size]
  const [refuseLongest] = most ?? []
  refuseLongest?.()
  return refuseLongest !== undefined
}

/** What refuses a request that gets no slot: 503. */
export function tooManyRequests(reached: LimitReached): ApiError {
  const whose = reached === 'key_limit' ? 'Too many of your requests' : 'Too many requests'
  return serviceUnavailable(`${whose} are under way; try again in a moment.`)
}
