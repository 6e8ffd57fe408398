import { unescape } from 'node:querystring'
import type { Duplex } from 'node:stream'
import { splitHosts } from '@workflow-service/contract'
import { type Logger, withTimeout } from '@workflow-service/service-kit'
import { type ChannelModel, connect, type Options, type SocketOptions } from 'amqplib'
import { declareQueues, type QueueType } from './declare-queues.ts'
import type { DeadLetterReason } from './session-queue.ts'

/** `blocked`: connected, but the broker accepts no messages because of its memory or disk alarm. */
export type ConnectionState = 'up' | 'down' | 'blocked'

export interface RabbitMqOptions {
  /**
   * `amqp://` or `amqps://`, with user, password and virtual host. `?heartbeat=` sets the heartbeat in seconds. May
   * name several nodes of a cluster, separated by commas: each attempt uses the next one.
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
  logger?: Pick<Logger, 'info' | 'warn'>
  /** Called when a connection comes up, goes down or is blocked; `down` comes once per outage. */
  onState?: (role: ConnectionRole, state: ConnectionState) => void
  /** Called for each message that cannot be read. */
  onDeadLetter?: (reason: DeadLetterReason) => void
}

type ConnectionRole = 'publisher' | 'consumer'

/**
 * Opens the channels of each new connection, on which the queues are declared. When a channel closes or the broker
 * cancels a consumer, `reconnect` drops the connection, and the next one gets new channels.
 */
type SetUp = (model: ChannelModel, reconnect: (reason: string) => void) => Promise<void>

/** A connection that reconnects until it is closed. */
export type RecoveringConnection = ReturnType<typeof openConnection>

/** Two missed heartbeats end a connection, so a frozen broker is noticed within 15 s. */
const HEARTBEAT_SECONDS = '5'
const TIMEOUT_MS = { connect: 5_000, setUp: 5_000, close: 2_000 } as const
/**
 * Doubles after each failed attempt, and after each connection that was open for less than `most`: RabbitMQ may close
 * it at the first message, for want of a permission.
 */
const RECONNECT_DELAY_MS = { first: 200, most: 5_000 } as const

/**
 * Connects in the background and reconnects without end. Adds to amqplib's recovery what it leaves to its user: errors
 * and time-outs of the set-up, and closing while the broker does not answer.
 */
export function openConnection(role: ConnectionRole, options: RabbitMqOptions, setUpChannels: SetUp) {
  const { url, queueType, connectionName, logger } = options
  const nodes = splitHosts(url).map(withHeartbeat)
  // Spreads the services over the nodes.
  let attempt = Math.floor(Math.random() * nodes.length)
  const sockets = new AbortController()
  let failures = 0
  let openedMs = 0
  /** Why the connection is down; of one outage, each reason once. */
  const outage = new Set<string>()
  const report = (state: ConnectionState): void => {
    if (state !== 'down') outage.clear()
    options.onState?.(role, state)
  }
  const reportDown = (error: Error): void => {
    attempt += 1
    const reason = describeFailure(error)
    if (outage.has(reason) || sockets.signal.aborted) return
    if (outage.size === 0) report('down')
    outage.add(reason)
    logger?.warn({ role, error: reason }, 'broker.disconnected')
  }
  const reportUp = (): void => {
    report('up')
    logger?.info({ role }, 'broker.connected')
  }
  const setUp: SetUp = async (model, reconnect) => {
    await declareQueues(model, queueType, (queue, { message }) =>
      logger?.warn({ queue, error: message }, 'queue.mismatched'),
    )
    await setUpChannels(model, reconnect)
  }
  const socketOptions: SocketOptions & { signal: AbortSignal } = {
    // Nagle's algorithm and delayed acknowledgements together delay each confirm at a low rate.
    noDelay: true,
    keepAlive: true,
    timeout: TIMEOUT_MS.connect,
    clientProperties: { connection_name: `${connectionName} ${role}` },
    signal: sockets.signal,
  }
  const target = toAlternatingTarget(nodes, () => attempt)
  const opening = connect(target, {
    ...socketOptions,
    recovery: {
      calculateDelay: () => {
        const { first, most } = RECONNECT_DELAY_MS
        return Math.min(most, first * 2 ** failures++) * (1 - 0.2 * Math.random())
      },
      waitForConnect: false,
      setup: (model: ChannelModel) => setUpSafely(model, setUp),
    },
  }).then((recovering) => {
    recovering.on('connect', () => {
      openedMs = performance.now()
      reportUp()
    })
    recovering.on('disconnect', (error: Error) => {
      if (performance.now() - openedMs >= RECONNECT_DELAY_MS.most) failures = 0
      reportDown(error)
    })
    recovering.on('connect-failed', reportDown)
    recovering.on('blocked', () => {
      report('blocked')
      logger?.warn({ role }, 'broker.blocked')
    })
    recovering.on('unblocked', reportUp)
    // An unhandled `error` event would crash the process; `disconnect` reports the same error.
    recovering.on('error', () => {})
    return recovering
  })
  return {
    /** Why the connection is down; undefined while it is open. */
    whyDown: (): string | undefined => [...outage].at(-1),
    /** Resolves within `TIMEOUT_MS.close`, even if the broker does not answer. */
    async close() {
      const recovering = await opening
      await withTimeout(recovering.close(), TIMEOUT_MS.close).catch(() => {})
      sockets.abort()
    },
  }
}

async function setUpSafely(model: ChannelModel, setUp: SetUp): Promise<void> {
  let isClosed = false
  const { promise: closed, resolve: close } = Promise.withResolvers<void>()
  // amqplib adds its own listeners after the set-up. Before that, an `error` event would crash the process and a
  // `close` event would be missed.
  model.on('error', () => {})
  model.once('close', () => {
    isClosed = true
    close()
  })
  const reconnect = (reason: string): void => {
    if (!isClosed) socketOf(model).destroy(new Error(reason))
  }
  try {
    await withTimeout(
      setUp(model, reconnect),
      TIMEOUT_MS.setUp,
      () => new Error(`Opening the channels took longer than ${TIMEOUT_MS.setUp} ms`),
    )
  } catch (error) {
    // amqplib closes the connection next, and waits without a time-out for the broker's answer unless the socket is
    // closed.
    reconnect('The set-up failed')
    await closed
    throw error
  }
  if (isClosed) throw new Error('The connection closed during the set-up')
}

function socketOf(model: ChannelModel): Duplex {
  return (model.connection as unknown as { stream: Duplex }).stream
}

/** Returns the reason of a lost connection or a failed attempt. */
function describeFailure(error: Error): string {
  // The error of an attempt that has tried all addresses of a host has no message of its own.
  if (error instanceof AggregateError) return error.errors.map(({ message }: Error) => message).join(', ')
  // amqplib drops the broker's reason.
  if (error.message.startsWith('Expected ConnectionOpenOk; got <ConnectionClose')) {
    return 'RabbitMQ refused the virtual host: it does not exist, the user has no permissions in it, or a limit of connections is reached; the log of RabbitMQ says which'
  }
  return error.message
}

/**
 * amqplib reads the options at each attempt. It gets no URL, of which it would decode user and password as Latin-1.
 */
function toAlternatingTarget(urls: readonly string[], attempt: () => number): Options.Connect {
  const current = (): URL => new URL(urls[attempt() % urls.length]!)
  const { protocol, username, password, pathname, searchParams } = current()
  return {
    ...Object.fromEntries(searchParams),
    protocol: protocol.slice(0, -1),
    get hostname() {
      return current().hostname.replace(/^\[|\]$/g, '')
    },
    get port() {
      const isPlain = protocol === 'amqp:'
      return Number(current().port) || (isPlain ? 5_672 : 5_671)
    },
    ...(username === '' && password === '' ? {} : { username: unescape(username), password: unescape(password) }),
    vhost: pathname.slice(1),
  }
}

function withHeartbeat(url: string): string {
  const withQuery = new URL(url)
  if (!withQuery.searchParams.has('heartbeat')) withQuery.searchParams.set('heartbeat', HEARTBEAT_SECONDS)
  return withQuery.href
}
