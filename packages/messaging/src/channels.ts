import { withTimeout } from '@workflow-service/service-kit'
import type { Channel, ChannelModel } from 'amqplib'

const CLOSE_TIMEOUT_MS = 2_000

/**
 * Opens a channel. An unhandled `error` event would crash the process; the `close` event that follows reports the loss.
 */
export async function openChannel(model: ChannelModel): Promise<Channel> {
  const channel = await model.createChannel()
  channel.on('error', () => {})
  return channel
}

/** Calls back when the channel closes, with the broker's reason if it has closed the channel. */
export function onChannelClose(channel: Channel, callBack: (reason: string) => void): void {
  let reason = 'The channel closed'
  channel.on('error', (error: Error) => void (reason = error.message))
  channel.on('close', () => callBack(reason))
}

/**
 * Closes a channel; returns silently when it is closed already, its connection is lost, or the broker does not answer.
 */
export async function closeChannel(channel: Channel): Promise<void> {
  await withTimeout(channel.close(), CLOSE_TIMEOUT_MS).catch(() => {})
}
