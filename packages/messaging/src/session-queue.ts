import type { SessionMessage } from '@workflow-service/contract'

/** What came of publishing: `confirmed` by the broker and routed to a queue, or not known to have arrived. */
export type PublishOutcome = 'confirmed' | 'failed'

/** What travels beside a message. */
export interface MessageProperties {
  /** The request that the work follows from, for the logs. */
  requestId?: string
}

/** A running consumption. */
export interface Consumer {
  /** Takes no further message, waits for the handlers under way, then lets the channel go. Safe to repeat. */
  close(): Promise<void>
}

/** Why a message is in the dead-letter queue; `broker` when the broker itself put it there. */
export type DeadLetterReason = 'not_json' | 'wrong_shape' | 'unknown_type' | 'broker'

/** A message that could not be read. */
export interface DeadLetter {
  readonly reason: DeadLetterReason
  /** The reason in words. */
  readonly detail: string
  readonly body: string
  /** The message's `type` property; null when it had none. */
  readonly type: string | null
  /** When it was given up; null when that is not known. */
  readonly diedAt: Date | null
}

/**
 * The queue of wake-ups (design 6.2): RabbitMQ's `workflow.sessions`, or the in-process stand-in with the same promises.
 * A message may be lost, doubled or late without harm, so nothing here retries or blocks.
 */
export interface SessionQueue {
  /** Publishes persistently and mandatorily. Never rejects and never throws: a broker that is away is `failed`. */
  publish(message: SessionMessage, properties?: MessageProperties): Promise<PublishOutcome>
  /**
   * Hands each readable message to the handler and acknowledges it when the handler's promise settles; what cannot be
   * read goes to the dead-letter queue with its reason. Keeps consuming across reconnects, and resolves also while the
   * broker is away.
   */
  consume(
    handler: (message: SessionMessage, properties: MessageProperties) => Promise<void>,
    options: { prefetch: number },
  ): Promise<Consumer>
  /** Messages that wait in the queue and in the dead-letter queue; rejects while the broker is away. */
  depth(): Promise<{ ready: number; dead: number }>
  /** The oldest dead letters, which stay where they are; rejects while the broker is away. */
  deadLetters(limit: number): Promise<DeadLetter[]>
  /** Rejects unless the broker answers. */
  ping(): Promise<void>
  close(): Promise<void>
}
