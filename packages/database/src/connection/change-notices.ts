import type { EventTopic } from '@workflow-service/contract'
import type { Client } from 'pg'
import type { Db } from './client.ts'
import { toPrimary } from './connect-to-primary.ts'

/**
 * Notices of what changed, by LISTEN and NOTIFY of PostgreSQL: the services that change data notify, the application
 * listens for its pages.
 */

/** What changed, as the event stream sends it to the pages of an organization. */
export interface ChangeNotice {
  readonly organizationId: string
  readonly topics: readonly EventTopic[]
}

const CHANNEL = 'app_events'
/** An application has this lock, shared with others, while a page is open. */
const PAGES_LOCK = `hashtextextended('open pages', 0)`
/** Without a page, it writes nothing: a transaction that notifies is one more commit, up to three for each run. */
const SEND = {
  name: 'send-notices',
  text: `SELECT pg_notify($1, payload) FROM unnest($2::text[]) AS payload
    WHERE NOT pg_try_advisory_xact_lock(${PAGES_LOCK})`,
}
const SEND_INTERVAL_MS = 250
/** With all topics, an entry has 130 bytes, and a notification at most 8,000. */
const ORGANIZATIONS_PER_NOTIFICATION = 50

/**
 * Creates a sender that sends one statement per 250 ms, and none while nothing is added. A lost notice does no harm.
 * NOTIFY within the statements that change data would reduce their commits to a third, because PostgreSQL serializes
 * the commits of transactions that notify.
 */
export function createChangeNotifier(options: {
  db: Db
  /** Called for the first failure after a success. */
  onError: (error: unknown) => void
}) {
  const { db, onError } = options
  let pending = new Map<string, Set<EventTopic>>()
  let timer: NodeJS.Timeout | undefined
  let hasFailed = false

  const send = async (): Promise<void> => {
    clearTimeout(timer)
    timer = undefined
    const entries = [...pending].map(([organizationId, topics]) => [organizationId, [...topics]] as const)
    pending = new Map()
    const payloads: string[] = []
    for (let first = 0; first < entries.length; first += ORGANIZATIONS_PER_NOTIFICATION) {
      payloads.push(JSON.stringify(Object.fromEntries(entries.slice(first, first + ORGANIZATIONS_PER_NOTIFICATION))))
    }
    if (payloads.length === 0) return
    try {
      await db.pool.query({ ...SEND, values: [CHANNEL, payloads] })
      hasFailed = false
    } catch (error) {
      if (!hasFailed) onError(error)
      hasFailed = true
    }
  }
  return {
    /** Returns at once; the notice is sent within 250 ms. */
    add: (organizationId: string, ...topics: EventTopic[]) => {
      let known = pending.get(organizationId)
      if (!known) pending.set(organizationId, (known = new Set()))
      for (const topic of topics) known.add(topic)
      timer ??= setTimeout(() => void send(), SEND_INTERVAL_MS).unref()
    },
    /** Sends what was added. Never rejects. */
    close: send,
  }
}

/** Receives the notices of all processes, while a page is open. */
export type ChangeListener = ReturnType<typeof listenToChanges>

const FIRST_RECONNECT_MS = 200
const MAX_RECONNECT_MS = 5_000
/** A connection that does not answer within this time is replaced. */
const PING_INTERVAL_MS = 15_000

/**
 * Listens on a connection of its own, and reconnects without end. After a reconnect, and once it is connected if a page
 * has opened before, `onGap` is called: notices may be lost.
 */
export function listenToChanges(options: {
  url: string
  applicationName: string
  onNotice: (notice: ChangeNotice) => void
  onGap: () => void
  onState: (state: 'up' | 'down', error?: Error) => void
}) {
  const { url, applicationName, onNotice, onGap, onState } = options
  const primary = toPrimary(url)
  let isClosed = false
  let client: Client | undefined
  let retry: NodeJS.Timeout | undefined
  let delayMs = FIRST_RECONNECT_MS
  let hasBeenUp = false
  let pages = 0
  /** The lock for open pages, while there are any and a connection listens. */
  let lock: Promise<unknown> | undefined
  let query: ((text: string) => Promise<unknown>) | undefined
  const lockForPages = async (): Promise<void> => {
    lock ??= query?.(`SELECT pg_advisory_lock_shared(${PAGES_LOCK})`)
    await lock
  }

  const connect = async (): Promise<void> => {
    const current = new primary.Client({
      connectionString: primary.connectionString,
      application_name: applicationName,
      keepAlive: true,
      connectionTimeoutMillis: 4_000,
      query_timeout: 5_000,
    })
    client = current
    let ping: NodeJS.Timeout | undefined
    let isDown = false
    const reconnect = (cause?: Error): void => {
      if (isDown) return
      isDown = true
      query = undefined
      lock = undefined
      clearInterval(ping)
      void current.end().catch(() => {})
      if (isClosed) return
      onState('down', cause)
      retry = setTimeout(() => void connect(), delayMs)
      delayMs = Math.min(2 * delayMs, MAX_RECONNECT_MS)
    }
    current.on('error', reconnect)
    current.on('end', () => reconnect())
    current.on('notification', ({ payload = '{}' }) => {
      for (const [organizationId, topics] of Object.entries(JSON.parse(payload) as Record<string, EventTopic[]>)) {
        onNotice({ organizationId, topics })
      }
    })
    try {
      await current.connect()
      await current.query(`LISTEN ${CHANNEL}`)
      if (isDown) return
      // In turn: pg 9 refuses a query of a client that executes another one.
      let last: Promise<unknown> = Promise.resolve()
      query = (text) => (last = last.then(() => current.query(text)).catch(reconnect))
      if (pages > 0) await lockForPages()
    } catch (error) {
      reconnect(error as Error)
      return
    }
    if (isDown) return
    delayMs = FIRST_RECONNECT_MS
    onState('up')
    if (hasBeenUp || pages > 0) onGap()
    hasBeenUp = true
    ping = setInterval(() => void query?.('SELECT 1'), PING_INTERVAL_MS).unref()
  }
  void connect()
  return {
    /** Counts a page that opens. Resolves when notices are sent, or with `onGap` later while PostgreSQL is down. */
    addPage: async (): Promise<void> => {
      pages += 1
      await lockForPages()
    },
    removePage: (): void => {
      pages -= 1
      if (pages > 0 || !lock) return
      lock = undefined
      void query?.(`SELECT pg_advisory_unlock_shared(${PAGES_LOCK})`)
    },
    close: async (): Promise<void> => {
      isClosed = true
      clearTimeout(retry)
      await client?.end().catch(() => {})
    },
  }
}
