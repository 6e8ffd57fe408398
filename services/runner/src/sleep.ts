import { setTimeout as delay } from 'node:timers/promises'

/** Waits. Rejects with the signal's reason when the signal aborts. */
export async function sleep(delayMs: number, signal: AbortSignal): Promise<void> {
  // The signal's own reason: Node rejects with an AbortError that has it as its cause.
  await delay(delayMs, undefined, { signal }).catch(() => signal.throwIfAborted())
}
