import { EVENT_TOPICS } from '@workflow-service/contract/app'
import { type ChangeNotice, type Db, findOpenSignIns, listenToChanges } from '@workflow-service/database'
import { describeError, type Logger, repeat } from '@workflow-service/service-kit'
import type { Response } from 'express'
import type { Principal } from './auth/principal.ts'

/** The person of a stream. */
export type StreamOwner = Pick<Principal, 'signInId' | 'userId' | 'organizationId'>

/** The open pages of this process, which hear what changed in their organization. */
export type EventStreams = ReturnType<typeof createEventStreams>

/** Shorter than the idle time-outs of proxies. */
const HEARTBEAT_MS = 25_000
const RECHECK_MS = 60_000

/**
 * Creates the streams, and listens to the notices of all processes. A reader that does not read is cut off, so that a
 * stream keeps no more in memory than its socket; the page connects again and reads everything anew.
 */
export function createEventStreams(options: {
  db: Db
  databaseUrl: string
  logger: Logger
  heartbeatMs?: number
  recheckMs?: number
}) {
  const { db, databaseUrl, logger, heartbeatMs = HEARTBEAT_MS, recheckMs = RECHECK_MS } = options
  const streams = new Map<Response, StreamOwner>()

  /** Sends topics to the streams of an organization, or to all. */
  const publish = ({ organizationId, topics }: Partial<ChangeNotice> & Pick<ChangeNotice, 'topics'>): void => {
    for (const [res, person] of streams) {
      const isFor = organizationId === undefined || person.organizationId === organizationId
      if (isFor) send(res, `data: ${JSON.stringify({ topics })}\n\n`)
    }
  }

  const heartbeat = setInterval(() => {
    for (const res of streams.keys()) send(res, ':\n\n')
  }, heartbeatMs).unref()
  const recheck = repeat({
    name: 'check the sign-ins of open pages',
    intervalMs: recheckMs,
    firstDelayMs: recheckMs,
    logger,
    run: async () => {
      const open = [...streams]
      if (open.length === 0) return
      const valid = await findOpenSignIns(db, [...new Set(open.map(([, person]) => person.signInId))])
      for (const [res, person] of open) {
        if (valid.get(person.signInId) !== person.organizationId) res.end()
      }
    },
  })
  const listener = listenToChanges({
    url: databaseUrl,
    applicationName: 'app-notices',
    onNotice: publish,
    onGap: () => publish({ topics: EVENT_TOPICS }),
    onState: (state, error) => {
      if (state === 'up') logger.info('change_notice.listening')
      else if (error) logger.warn({ error: describeError(error) }, 'change_notice.unavailable')
    },
  })
  return {
    /** Begins a stream. It ends when the sign-in ends or the person loses the role, within a minute. */
    open: (res: Response, person: StreamOwner) => {
      streams.set(res, person)
      res.once('close', () => {
        streams.delete(res)
        listener.removePage()
      })
      // X-Accel-Buffering: nginx would hold back the events.
      const headers = { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store', 'X-Accel-Buffering': 'no' }
      res.writeHead(200, headers)
      // Once notices are sent: the page reads then, and needs every notice from then on.
      void listener.addPage().then(() => send(res, 'retry: 3000\n\n'))
    },
    /** How many streams of the person are open. */
    countOf: ({ organizationId, userId }: Pick<StreamOwner, 'organizationId' | 'userId'>) =>
      [...streams.values()].filter((each) => each.organizationId === organizationId && each.userId === userId).length,
    publish,
    close: async () => {
      clearInterval(heartbeat)
      await Promise.all([recheck.stop(), listener.close()])
      for (const res of streams.keys()) res.end()
    },
  }
}

function send(res: Response, text: string): void {
  if (res.writableNeedDrain) res.destroy()
  else if (!res.destroyed && !res.writableEnded) res.write(text)
}
