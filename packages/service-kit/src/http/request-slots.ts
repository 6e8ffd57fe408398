import type { ServerResponse } from 'node:http'
import { createInFlightLimiter, type InFlightLimiter, type ReleaseSlot } from '../in-flight-limiter.ts'
import { serviceUnavailable } from './errors.ts'
import { isStream } from './open-streams.ts'

/** How many requests may be in flight. */
export interface RequestSlotsOptions<Principal> {
  readonly total: number
  readonly perKey: number
  /** What shares the slots of `perKey`, such as an organization. */
  readonly keyOf: (principal: Principal) => string
}

/** The slots of requests. Both functions throw an ApiError 503 when there is no free slot. */
export interface RequestSlots<Principal> {
  /** Reads a body. */
  whileReading<Body>(principal: Principal, read: () => Promise<Body>): Promise<Body>
  /** Answers a request whose body has been read. The slot is free once the answer has been sent, or its stream has begun. */
  whileAnswering(res: ServerResponse, principal: Principal, answer: () => void | Promise<void>): void | Promise<void>
}

/**
 * Creates slots for requests whose bodies are being read, and as many for requests that are being answered: bodies that arrive
 * byte by byte take no slot from requests that have arrived. Waiting for slots is of no use: callers that wait would take
 * as much memory.
 */
export function createRequestSlots<Principal>(options?: RequestSlotsOptions<Principal>): RequestSlots<Principal> {
  if (!options)
    return { whileReading: (_principal, read) => read(), whileAnswering: (_res, _principal, answer) => answer() }
  const { total, perKey, keyOf } = options
  const limits = { total, perKey, waitMs: 0, maxWaiting: 0, maxWaitingPerKey: 0 }
  const [reading, answering] = [createInFlightLimiter(limits), createInFlightLimiter(limits)]
  return {
    whileReading: async (principal, read) => {
      const releaseSlot = acquire(reading, keyOf(principal))
      return read().finally(releaseSlot)
    },
    whileAnswering: (res, principal, answer) => {
      const releaseSlot = acquire(answering, keyOf(principal))
      // Not before the handler has ended: a caller that disconnects leaves its work behind.
      const release = (): void => {
        if (res.closed || isStream(res)) releaseSlot()
        else res.once('close', releaseSlot)
      }
      let answered: void | Promise<void>
      try {
        answered = answer()
      } catch (error) {
        release()
        throw error
      }
      if (!(answered instanceof Promise)) release()
      return answered instanceof Promise ? answered.finally(release) : answered
    },
  }
}

function acquire(limiter: InFlightLimiter, key: string): ReleaseSlot {
  const slot = limiter.tryAcquire(key)
  if (typeof slot === 'function') return slot
  const whose = slot === 'key_limit' ? 'Too many of your requests' : 'Too many requests'
  throw serviceUnavailable(`${whose} are under way; try again in a moment.`)
}
