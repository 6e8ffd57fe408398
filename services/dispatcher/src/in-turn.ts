/** Runs the work after all earlier work of the same key has ended, and resolves or rejects as it does. */
export type InTurn = <Result>(key: string, work: () => Promise<Result>) => Promise<Result>

/** One line for each key. A key without work costs nothing. */
export function createInTurn(): InTurn {
  const tails = new Map<string, Promise<unknown>>()
  return async (key, work) => {
    const before = tails.get(key) ?? Promise.resolve()
    const turn = before.then(work, work)
    tails.set(key, turn)
    try {
      return await turn
    } finally {
      if (tails.get(key) === turn) tails.delete(key)
    }
  }
}
