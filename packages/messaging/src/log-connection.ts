import type { ConnectionState } from './open-connection.ts'
import type { RabbitMqOptions } from './rabbitmq-options.ts'

/** Returns a function that logs a connection's state and passes it to `onState`. */
export function stateReporter(role: 'publisher' | 'consumer', { logger, onState }: RabbitMqOptions) {
  return (state: ConnectionState, error?: Error): void => {
    onState?.(role, state)
    if (state === 'up') logger?.info({ role }, 'broker.connected')
    else if (state === 'blocked') logger?.warn({ role }, 'broker.blocked')
    else logger?.warn({ role, error: error?.message }, 'broker.disconnected')
  }
}

/** Returns a function that logs a queue that could not be declared, and why. */
export function logMismatch({ logger }: RabbitMqOptions) {
  return (queue: string, error: Error): void => {
    logger?.warn({ queue, error: error.message }, 'queue.mismatched')
  }
}
