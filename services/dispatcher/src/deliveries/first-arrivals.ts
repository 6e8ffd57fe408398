/** Remembers when deliveries first arrived that could not be sent yet. */
export interface FirstArrivals {
  /** Returns the time and forgets it. */
  take(deliveryId: string): number | undefined
  add(deliveryId: string, arrivedMs: number): void
}

/** A run may end before its delivery is asked for again, so the oldest are forgotten: 10,000 take about 1 MiB. */
const MAX_REMEMBERED = 10_000

export function createFirstArrivals(): FirstArrivals {
  const arrivals = new Map<string, number>()
  return {
    take: (deliveryId) => {
      const arrivedMs = arrivals.get(deliveryId)
      arrivals.delete(deliveryId)
      return arrivedMs
    },
    add: (deliveryId, arrivedMs) => {
      arrivals.set(deliveryId, arrivedMs)
      const [oldest] = arrivals.keys()
      if (arrivals.size > MAX_REMEMBERED && oldest !== undefined) arrivals.delete(oldest)
    },
  }
}
