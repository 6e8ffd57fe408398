import { withTimeout } from '@workflow-service/service-kit'
import type { Channel } from 'amqplib'

const CLOSE_TIMEOUT_MS = 2_000

/** Closes a channel; returns silently when it is closed already, its connection is lost, or the broker does not answer. */
export async function closeChannel(channel: Channel): Promise<void> {
  try {
    await withTimeout(channel.close(), CLOSE_TIMEOUT_MS)
  } catch {
    // The channel ends with its connection.
  }
}
