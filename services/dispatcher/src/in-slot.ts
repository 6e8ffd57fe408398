import { serviceUnavailable } from '@workflow-service/service-kit'
import type { DispatcherContext } from './dispatcher-context.ts'

/**
 * Makes a request in one of the slots of this process and of the key. `work` reads what it sends, and where: while it
 * waits for the slot, that may be changed.
 * @throws ApiError 503 if no slot is free in time; nothing was read or sent then.
 */
export function inSlot<Result>(
  { limiter, slotWaitMs }: Pick<DispatcherContext, 'limiter' | 'slotWaitMs'>,
  key: string,
  work: () => Promise<Result>,
  maxWaitMs = slotWaitMs,
): Promise<Result> {
  return limiter.run(key, work, {
    waitMs: Math.min(slotWaitMs, maxWaitMs),
    refuse: () => serviceUnavailable('Too many requests to endpoints are in flight. Try again.'),
  })
}
