import { LIST_DEFAULT_LIMIT, type RunOut, type SessionDetailOut } from '@workflow-service/contract'
import {
  type AuditAction,
  closeOpenSession,
  createSession,
  findSession,
  findVisibleRun,
  inTransaction,
  listSessions,
  listVisibleRuns,
  recordAuditEvent,
  viewerOf,
} from '@workflow-service/database'
import { ApiError, notFound } from '@workflow-service/service-kit'
import type { AppContext } from '../../app-context.ts'
import type { Principal } from '../../auth/principal.ts'
import type { AppHandlers } from '../app-handlers.ts'
import { positionInTime, readCursor, timeOf, toDate, toPage, toVisiblePage } from './paging.ts'

/** Handlers of runs and sessions. */
export function runHandlers(ctx: AppContext) {
  const { db } = ctx
  const readSession = async (principal: Principal, sessionId: string): Promise<SessionDetailOut> => {
    const session = await findSession(db, viewerOf(principal), sessionId)
    if (!session) throw notFound('Session')
    return session
  }
  return {
    listRuns: async ({ principal, query }) => {
      const { limit, cursor, status, since, until, workflow_id: workflowId, session_id: sessionId } = query
      const filter = { status, workflowId, sessionId, since: toDate(since), until: toDate(until) }
      const after = cursor ? readCursor(cursor) : undefined
      const body = await toPage<RunOut>(
        limit,
        (rows) => listVisibleRuns(db, viewerOf(principal), { ...filter, limit: rows, after }),
        // The runs of a session are in the order of their numbers.
        (run) => (sessionId === undefined ? timeOf(run) : { number: run.number }),
      )
      return { status: 200, body }
    },
    getRun: async ({ principal, params }) => {
      const body = await findVisibleRun(db, viewerOf(principal), params.run_id)
      if (!body) throw notFound('Run')
      return { status: 200, body }
    },
    listSessions: async ({ principal, query }) => {
      const { limit = LIST_DEFAULT_LIMIT, cursor, state } = query
      const filter = { isOpen: state === undefined ? undefined : state === 'open', after: positionInTime(cursor) }
      return { status: 200, body: toVisiblePage(await listSessions(db, viewerOf(principal), { ...filter, limit })) }
    },
    getSession: async ({ principal, params }) => ({
      status: 200,
      body: await readSession(principal, params.session_id),
    }),
    createSession: async ({ principal, body: { id }, requestId }) => {
      const isNew = await inTransaction(db, async (client) => {
        const isCreated = await createSession(client, principal.organizationId, id)
        if (isCreated) await recordAuditEvent(client, toEvent('session.opened', principal, id, requestId))
        return isCreated
      })
      if (isNew) ctx.hints.add(principal.organizationId, 'sessions')
      const session = await findSession(db, viewerOf(principal), id)
      if (!session) throw new ApiError('id_taken', 'This id cannot be used. Choose a new one.')
      return { status: 201, body: session }
    },
    closeSession: async ({ principal, params: { session_id: id }, requestId }) => {
      const isClosed = await inTransaction(db, async (client) => {
        const wasOpen = await closeOpenSession(client, viewerOf(principal), id)
        if (wasOpen) await recordAuditEvent(client, toEvent('session.closed', principal, id, requestId))
        return wasOpen
      })
      if (isClosed) ctx.hints.add(principal.organizationId, 'sessions')
      return { status: 200, body: await readSession(principal, id) }
    },
  } satisfies Partial<AppHandlers>
}

function toEvent(action: AuditAction, principal: Principal, id: string, requestId: string) {
  return { action, principal, target: { kind: 'session', id, name: null }, requestId }
}
