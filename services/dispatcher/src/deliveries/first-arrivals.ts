/** A run may end before its delivery is asked for again, so the oldest are forgotten. */
const MAX_REMEMBERED = 10_000

export function createFirstArrivals() {
  const arrivals = new Map<string, number>()
  return {
    /** Returns the time and forgets it. */
    take: (deliveryId: string) => {
      const arrivedMs = arrivals.get(deliveryId)
      arrivals.delete(deliveryId)
      return arrivedMs
    },
    add: (deliveryId: string, arrivedMs: number) => {
      arrivals.set(deliveryId, arrivedMs)
      const [oldest] = arrivals.keys()
      if (arrivals.size > MAX_REMEMBERED && oldest !== undefined) arrivals.delete(oldest)
    },
  }
}
