import type { QueueType } from './declare-queues.ts'
import type { ConnectionState, QueueLogger } from './open-connection.ts'
import type { DeadLetterReason } from './session-queue.ts'

/** The options of `connectRabbitMq`. */
export interface RabbitMqOptions {
  /**
   * `amqp://` or `amqps://`, with user, password and virtual host. `?heartbeat=` sets the heartbeat in seconds.
   * @default heartbeat 5: a broker that does not answer is noticed within 15 s
   */
  url: string
  /** The type of the session queue if this process is the first to declare it; an existing queue is used as it is. */
  queueType: QueueType
  /** Names the process in the broker's list of connections. */
  connectionName: string
  /**
   * Gets connection losses, handlers that failed and messages that cannot be read.
   * @default no logging
   */
  logger?: QueueLogger
  /** Called when the publishing or the consuming connection comes up, goes down or is blocked by the broker's alarm. */
  onState?: (role: 'publisher' | 'consumer', state: ConnectionState) => void
  /** Called for each message that cannot be read. */
  onDeadLetter?: (reason: DeadLetterReason) => void
}
