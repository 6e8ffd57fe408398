/**
 * Counts the turns of the event loop while the work is under way, and resolves to its result. `turn` gives the present
 * one.
 */
export async function withTurns<Result>(work: (turn: () => number) => Promise<Result>): Promise<Result> {
  let turns = 0
  let isDone = false
  const count = (): void => {
    turns += 1
    if (!isDone) setImmediate(count)
  }
  setImmediate(count)
  try {
    return await work(() => turns)
  } finally {
    isDone = true
  }
}
