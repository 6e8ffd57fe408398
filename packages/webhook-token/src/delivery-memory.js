/** @type {typeof import('./delivery-memory.d.ts').createDeliveryMemory} */
export function createDeliveryMemory({ maxIds = 10_000 } = {}) {
  /** @type {Set<string>} */
  const seen = new Set()
  return {
    alreadySeen(id) {
      if (seen.has(id)) return true
      seen.add(id)
      // A set lists its oldest entry first.
      for (const oldest of seen) {
        if (seen.size <= maxIds) break
        seen.delete(oldest)
      }
      return false
    },
    forget(id) {
      seen.delete(id)
    },
  }
}
