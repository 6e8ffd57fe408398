import type { Logger } from '@workflow-service/service-kit'
import { connectRabbitMq } from './connect-rabbitmq.ts'
import type { RabbitMqOptions } from './open-connection.ts'
import type { SessionQueue } from './session-queue.ts'

/** Parts of a service that a test, or a program that runs all services in one process, provides itself. */
export interface ServiceOverrides {
  /** The caller closes it. */
  sessionQueue?: SessionQueue
  logger?: Logger
}

/** Opens the session queue of a service: on RabbitMQ, or the given one, which is always up and stays open. */
export function openSessionQueue({ sessionQueue }: ServiceOverrides, options: RabbitMqOptions): SessionQueue {
  if (!sessionQueue) return connectRabbitMq(options)
  for (const role of ['publisher', 'consumer'] as const) options.onState?.(role, 'up')
  return { ...sessionQueue, close: async () => {} }
}
