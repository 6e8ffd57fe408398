import type { SessionMessage, SessionsMessage } from '@workflow-service/contract'

/** `confirmed`: a queue has the message. `failed`: the message may not have arrived. */
export type PublishOutcome = 'confirmed' | 'failed'

/** What a message carries beside its body. */
export interface MessageProperties {
  /** The id of the request that caused the work, for log lines; header `x-request-id`. */
  requestId?: string
}

/**
 * Handles one session of a message. The message is acknowledged when the promises of all have settled. A rejection is
 * logged and the message is not delivered again: the work is in PostgreSQL, where the runner's sweep finds it.
 */
export type MessageHandler = (message: SessionMessage, properties: MessageProperties) => Promise<void>

interface ConsumeOptions {
  /** How many messages are handled at once; the broker delivers no further message meanwhile. */
  prefetch: number
}

/** An active subscription to the queue. */
export interface Consumer {
  /**
   * Stops receiving messages, waits for the handlers under way and acknowledges their messages. Further calls return
   * the same promise.
   */
  close(): Promise<void>
}

/** Why a message is in the dead-letter queue; `broker` when the broker itself moved it there. */
export type DeadLetterReason = 'not_json' | 'wrong_shape' | 'unknown_type' | 'broker'

/** A message that could not be read. */
export interface DeadLetter {
  readonly reason: DeadLetterReason
  /** The reason in words. */
  readonly detail: string
  readonly body: string
  /** The message's `type` property; null when it had none. */
  readonly type: string | null
  /** When the message was moved to the dead-letter queue; null when that is unknown. */
  readonly diedAt: Date | null
}

/** The queue of sessions that have work. Implements contract README, "Queue messages". */
export interface SessionQueue {
  /**
   * Publishes a persistent message. Never rejects and never retries: resolves to `failed` when the broker is
   * unavailable, does not confirm, or has no queue for the message.
   */
  publish(message: SessionMessage | SessionsMessage, properties?: MessageProperties): Promise<PublishOutcome>
  /**
   * Calls the handler for each session of each message, across reconnects. Resolves also while the broker is
   * unavailable. A message that cannot be read goes to the dead-letter queue; the handler does not see it.
   */
  consume(handler: MessageHandler, options: ConsumeOptions): Promise<Consumer>
  /** Counts the messages in the queue and in the dead-letter queue. Rejects while the broker is unavailable. */
  depth(): Promise<{ ready: number; dead: number }>
  /** Reads the oldest dead letters without removing them. Rejects while the broker is unavailable. */
  deadLetters(limit: number): Promise<DeadLetter[]>
  /** Rejects unless the broker answers. */
  ping(): Promise<void>
  /** Closes all consumers, then the connections. */
  close(): Promise<void>
}
