import { SESSIONS_DEAD_LETTER_QUEUE } from '@workflow-service/contract'
import type { Channel, GetMessage } from 'amqplib'
import { decodeSessionMessage, textOf } from './decode-session-message.ts'
import type { DeadLetter } from './session-queue.ts'

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

/** The reason is that for which a consumer rejected the message, so it is found by decoding the message again. */
function toDeadLetter({ content, properties }: GetMessage): DeadLetter {
  const headers = properties.headers ?? {}
  const body = content.toString('utf8')
  const type: unknown = properties.type
  const decoded = decodeSessionMessage(body, type)
  const diedAt = headers['x-death']?.[0]?.time?.value
  const brokerReason = headers['x-first-death-reason'] ?? 'unknown'
  return {
    ...('error' in decoded ? decoded.error : { reason: 'broker', detail: `Moved here by the broker: ${brokerReason}` }),
    body,
    type: textOf(type) ?? null,
    diedAt: diedAt === undefined ? null : new Date(1_000 * diedAt),
  }
}
