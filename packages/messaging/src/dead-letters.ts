import { SESSIONS_DEAD_LETTER_QUEUE } from '@workflow-service/contract'
import type { Channel, ConsumeMessage, GetMessage } from 'amqplib'
import type { MessageError } from './decode-session-message.ts'
import type { Publisher } from './open-publisher.ts'
import type { DeadLetter, DeadLetterReason, PublishOutcome } from './session-queue.ts'

export const REQUEST_ID_HEADER = 'x-request-id'
const REASON_HEADER = 'x-dead-letter-reason'
const DETAIL_HEADER = 'x-dead-letter-detail'
const DIED_AT_HEADER = 'x-dead-letter-at'
const ORIGINAL_ID_HEADER = 'x-original-message-id'

/** Copies a message that cannot be read to the dead-letter queue, with the reason in its headers. */
export function publishDeadLetter(
  publisher: Publisher,
  message: ConsumeMessage,
  error: MessageError,
): Promise<PublishOutcome> {
  const { type, contentType, headers, messageId } = message.properties
  const requestId: unknown = headers?.[REQUEST_ID_HEADER]
  return publisher.publish(SESSIONS_DEAD_LETTER_QUEUE, message.content, {
    ...(typeof type === 'string' ? { type } : {}),
    ...(typeof contentType === 'string' ? { contentType } : {}),
    headers: {
      ...(typeof messageId === 'string' ? { [ORIGINAL_ID_HEADER]: messageId } : {}),
      ...(typeof requestId === 'string' ? { [REQUEST_ID_HEADER]: requestId } : {}),
      [REASON_HEADER]: error.reason,
      [DETAIL_HEADER]: error.detail,
      [DIED_AT_HEADER]: new Date().toISOString(),
    },
  })
}

/** Reads the oldest dead letters. They return to their queue when the channel closes without an acknowledgement. */
export async function readDeadLetters(channel: Channel, limit: number): Promise<DeadLetter[]> {
  const letters: DeadLetter[] = []
  while (letters.length < limit) {
    const message = await channel.get(SESSIONS_DEAD_LETTER_QUEUE)
    if (message === false) break
    letters.push(toDeadLetter(message))
  }
  return letters
}

function toDeadLetter({ content, properties }: GetMessage): DeadLetter {
  const headers = properties.headers ?? {}
  const reason: unknown = headers[REASON_HEADER]
  const detail: unknown = headers[DETAIL_HEADER]
  const diedAt: unknown = headers[DIED_AT_HEADER]
  const brokerReason = headers['x-first-death-reason'] ?? 'unknown'
  const type: unknown = properties.type
  return {
    reason: isReason(reason) ? reason : 'broker',
    detail: typeof detail === 'string' ? detail : `Moved here by the broker: ${brokerReason}`,
    body: content.toString('utf8'),
    type: typeof type === 'string' ? type : null,
    diedAt: typeof diedAt === 'string' ? new Date(diedAt) : null,
  }
}

function isReason(value: unknown): value is DeadLetterReason {
  return value === 'not_json' || value === 'wrong_shape' || value === 'unknown_type'
}
