import { LIST_DEFAULT_LIMIT } from '@workflow-service/contract'
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
  type RunQuery,
  viewerOf,
} from '@workflow-service/database'
import { ApiError, found } from '@workflow-service/service-kit'
import type { AppContext } from '../../app-context.ts'
import type { Principal } from '../../auth/principal.ts'
import type { AppHandlers } from '../app-handlers.ts'
import { BY_NUMBER, BY_TIME, readCursor, readPage, timeOf, toDate, toPage } from '../paging.ts'

/** Handlers of runs and sessions. */
export function runHandlers(ctx: AppContext) {
  const { db } = ctx
  const readSession = async (principal: Principal, sessionId: string) => ({
    body: found(await findSession(db, viewerOf(principal), sessionId), 'Session'),
  })
  return {
    listRuns: async ({ principal, query }) => {
      const { status, since, until, workflow_id: workflowId, session_id: sessionId } = query
      const filter = { status, workflowId, sessionId, since: toDate(since), until: toDate(until) }
      const read = (limit: number, after: RunQuery['after']) =>
        listVisibleRuns(db, viewerOf(principal), { ...filter, limit, after })
      if (sessionId === undefined) return { body: await readPage(query, BY_TIME, read, timeOf) }
      return { body: await readPage(query, BY_NUMBER, read, ({ number }) => ({ number })) }
    },
    getRun: async ({ principal, params }) => ({
      body: found(await findVisibleRun(db, viewerOf(principal), params.run_id), 'Run'),
    }),
    listSessions: async ({ principal, query }) => {
      const { limit = LIST_DEFAULT_LIMIT, state } = query
      const isOpen = state === undefined ? undefined : state === 'open'
      const after = readCursor(query, BY_TIME)
      return { body: toPage(await listSessions(db, viewerOf(principal), { isOpen, limit, after }), BY_TIME) }
    },
    getSession: ({ principal, params }) => readSession(principal, params.session_id),
    createSession: async ({ principal, body: { id }, requestId }) => {
      const isNew = await inTransaction(db, async (client) => {
        const isCreated = await createSession(client, principal.organizationId, id)
        if (isCreated) await recordAuditEvent(client, toEvent('session.opened', principal, id, requestId))
        return isCreated
      })
      if (isNew) ctx.hints.add(principal.organizationId, 'sessions')
      const session = await findSession(db, viewerOf(principal), id)
      if (!session) throw new ApiError('id_taken', 'This id cannot be used. Choose a new one.')
      return { body: session }
    },
    closeSession: async ({ principal, params: { session_id: id }, requestId }) => {
      const isClosed = await inTransaction(db, async (client) => {
        const wasOpen = await closeOpenSession(client, viewerOf(principal), id)
        if (wasOpen) await recordAuditEvent(client, toEvent('session.closed', principal, id, requestId))
        return wasOpen
      })
      if (isClosed) ctx.hints.add(principal.organizationId, 'sessions')
      return await readSession(principal, id)
    },
  } satisfies Partial<AppHandlers>
}

function toEvent(action: AuditAction, principal: Principal, id: string, requestId: string) {
  return { action, principal, target: { kind: 'session', id, name: null }, requestId }
}
