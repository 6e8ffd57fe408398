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
const OWN_REASONS = ['not_json', 'wrong_shape', 'unknown_type'] as const satisfies DeadLetterReason[]

/** Copies a message that cannot be read to the dead-letter queue, with the reason in its headers. */
export function publishDeadLetter(
  publisher: Publisher,
  { content, properties }: ConsumeMessage,
  error: MessageError,
): Promise<PublishOutcome> {
  return publisher.publish(SESSIONS_DEAD_LETTER_QUEUE, content, {
    type: textOf(properties.type),
    contentType: textOf(properties.contentType),
    headers: {
      [ORIGINAL_ID_HEADER]: textOf(properties.messageId),
      [REQUEST_ID_HEADER]: textOf(properties.headers?.[REQUEST_ID_HEADER]),
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
  const diedAt = textOf(headers[DIED_AT_HEADER])
  const brokerReason = headers['x-first-death-reason'] ?? 'unknown'
  return {
    reason: OWN_REASONS.find((reason) => reason === headers[REASON_HEADER]) ?? 'broker',
    detail: textOf(headers[DETAIL_HEADER]) ?? `Moved here by the broker: ${brokerReason}`,
    body: content.toString('utf8'),
    type: textOf(properties.type) ?? null,
    diedAt: diedAt === undefined ? null : new Date(diedAt),
  }
}

/** A property of a message that is a text. Any client of the broker may have set it to something else. */
export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}
