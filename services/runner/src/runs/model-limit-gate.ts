import { type Database, recordModelLimit, reserveModelSlot } from '@workflow-service/database'
import type { ModelGate, ModelSlot } from '../agent/model/model-gate.ts'
import { retryWhileUnavailable } from './retry-while-unavailable.ts'

/** How long a runner remembers that a model has no limit before it asks the database again. */
const OPEN_FOR_MS = 1_000

/**
 * The gate whose state is in the database. While a model has no limit, a runner asks once a second; other requests cost
 * nothing.
 */
export function createModelLimitGate(
  db: Pick<Database, 'pool' | 'ping'>,
  now: () => number = () => performance.now(),
): ModelGate {
  const openUntil = new Map<string, number>()
  const blockedUntil = new Map<string, number>()
  const block = (model: string, ms: number): void => {
    blockedUntil.set(model, Math.max(blockedUntil.get(model) ?? 0, now() + ms))
  }
  /** A limit that the database does not have, or not yet, but this runner knows. */
  const reserveHere = (model: string): ModelSlot => {
    const delayMs = Math.ceil(Math.max(0, (blockedUntil.get(model) ?? 0) - now()))
    return { delayMs, isReserved: delayMs === 0 }
  }
  return {
    async reserve(model, options, abort) {
      if (now() < (openUntil.get(model) ?? 0)) return reserveHere(model)
      const slot = await retryWhileUnavailable({ db, signal: abort }, () => reserveModelSlot(db, model, options))
      if (!slot) {
        openUntil.set(model, now() + OPEN_FOR_MS)
        return reserveHere(model)
      }
      block(model, slot.blockedMs)
      // A timer counts whole milliseconds and may fire up to one early: the model would still count as blocked.
      return { delayMs: slot.delayMs === 0 ? 0 : Math.ceil(slot.delayMs) + 1, isReserved: slot.isReserved }
    },
    isBlocked: (model) => now() < (blockedUntil.get(model) ?? 0),
    async recordLimit(model, retryAfterMs, abort) {
      openUntil.delete(model)
      block(model, retryAfterMs)
      await retryWhileUnavailable({ db, signal: abort }, () => recordModelLimit(db, model, retryAfterMs))
    },
  }
}
