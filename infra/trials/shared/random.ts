/** A random number generator that gives the same numbers for the same seed. */
export type Random = ReturnType<typeof createRandom>

/** The generator "mulberry32". */
export function createRandom(seed: number) {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  /** From `low` up to, but not including, `high`. */
  const between = (low: number, high: number): number => low + next() * (high - low)
  return {
    between,
    chance: (probability: number): boolean => next() < probability,
    pick: <Item>(items: readonly Item[]): Item => items[Math.floor(between(0, items.length))]!,
  }
}
