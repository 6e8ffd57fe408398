import type { Duplex } from 'node:stream'
import { type ChannelModel, connect, type SocketOptions } from 'amqplib'
import { withDeadline } from './deadline.ts'

/** The part of a logger that this package needs; pino's has it. */
export interface QueueLogger {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  debug(fields: object, message: string): void
}

/** `blocked`: the broker takes no messages for the time being (its memory or disk alarm). */
export type ConnectionState = 'up' | 'down' | 'blocked'

export interface ConnectionOptions {
  url: string
  /** Shown in the broker's list of connections. */
  name: string
  /**
   * Makes channels on each new connection. `lose` drops the connection, so that another one is set up: the way to get
   * a closed channel or a cancelled consumer back.
   */
  setUp: (model: ChannelModel, lose: (reason: string) => void) => Promise<void>
  onState: (state: ConnectionState, error?: Error) => void
}

/** A connection that comes back by itself until it is closed. */
export interface RecoveringConnection {
  /** Resolves within a few seconds, whatever the broker does. */
  close(): Promise<void>
}

/** Heartbeats of 5 s: a frozen broker is noticed within 15 s. They count only when they stand in the URL. */
const HEARTBEAT_SECONDS = '5'
const CONNECT_TIMEOUT_MS = 5_000
const SET_UP_TIMEOUT_MS = 5_000
const CLOSE_TIMEOUT_MS = 2_000

/**
 * Connects in the background, again and again. amqplib's recovery does the waiting; around it stands what it leaves to
 * its user: errors while setting up, a set-up that hangs, and sockets whose other end is frozen.
 */
export function openConnection(options: ConnectionOptions): RecoveringConnection {
  const { url, name, setUp, onState } = options
  const sockets = new AbortController()
  let isDown = false
  const goDown = (error: Error): void => {
    if (isDown || sockets.signal.aborted) return
    isDown = true
    onState('down', error)
  }
  const socketOptions: SocketOptions & { signal: AbortSignal } = {
    // Without it a confirm at low rate takes 44 ms.
    noDelay: true,
    keepAlive: true,
    timeout: CONNECT_TIMEOUT_MS,
    clientProperties: { connection_name: name },
    signal: sockets.signal,
  }
  const opening = connect(withHeartbeat(url), {
    ...socketOptions,
    recovery: {
      initialDelay: 200,
      maxDelay: 5_000,
      waitForConnect: false,
      setup: (model: ChannelModel) => setUpSafely(model, setUp),
    },
  }).then((recovering) => {
    recovering.on('connect', () => {
      isDown = false
      onState('up')
    })
    recovering.on('disconnect', goDown)
    recovering.on('connect-failed', goDown)
    recovering.on('blocked', () => onState('blocked'))
    recovering.on('unblocked', () => onState('up'))
    // Told by `disconnect` too; without a listener it would end the process.
    recovering.on('error', () => {})
    return recovering
  })
  return {
    async close() {
      const recovering = await opening
      await withDeadline(recovering.close(), CLOSE_TIMEOUT_MS, 'Closing the connection').catch(() => {})
      sockets.abort()
    },
  }
}

async function setUpSafely(model: ChannelModel, setUp: ConnectionOptions['setUp']): Promise<void> {
  let isClosed = false
  const { promise: closed, resolve: close } = Promise.withResolvers<void>()
  // amqplib listens only after the set-up: an error before that would end the process, a close go unnoticed for ever.
  model.on('error', () => {})
  model.once('close', () => {
    isClosed = true
    close()
  })
  const lose = (reason: string): void => {
    if (!isClosed) socketOf(model).destroy(new Error(reason))
  }
  try {
    await withDeadline(setUp(model, lose), SET_UP_TIMEOUT_MS, 'Setting the channels up')
  } catch (error) {
    // amqplib closes the connection next, and waits for the answer for ever unless it knows that the socket is dead.
    lose('The set-up failed')
    await closed
    throw error
  }
  if (isClosed) throw new Error('The connection closed while it was set up')
}

function socketOf(model: ChannelModel): Duplex {
  return (model.connection as unknown as { stream: Duplex }).stream
}

function withHeartbeat(url: string): string {
  const withQuery = new URL(url)
  if (!withQuery.searchParams.has('heartbeat')) withQuery.searchParams.set('heartbeat', HEARTBEAT_SECONDS)
  return withQuery.href
}
