/**
 * Creates a memory of delivery ids for one process that may forget them when it ends: for development, and where a
 * payload that is processed twice does no harm. Keeps the latest `maxIds`, by default 10,000 (about 1 MiB).
 */
export declare function createDeliveryMemory(options?: { maxIds?: number }): DeliveryMemory

/** The delivery ids that were received. A store in Redis or PostgreSQL has the same methods: see the README. */
export interface DeliveryMemory {
  /** Whether the id was given before. Remembers it: of two requests at the same time, one gets false. */
  alreadySeen: (id: string) => boolean
  /** Forgets the id of a payload that could not be processed, so that it can be sent again. */
  forget: (id: string) => void
}
