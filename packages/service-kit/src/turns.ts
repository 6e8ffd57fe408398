import { setImmediate as nextTurn } from 'node:timers/promises'
import { createKeyedMutex } from './keyed-mutex.ts'

/**
 * Returns a function that waits for the next turn of a key. It resolves in the order of its calls, for each key at most
 * once in the time that `wait` takes: by default a turn of the event loop. A key with many calls delays no other key.
 */
export function createTurns(wait: () => Promise<void> = () => nextTurn()): (key: string) => Promise<void> {
  const runExclusive = createKeyedMutex()
  return (key) => runExclusive(key, wait)
}
