import { LIST_DEFAULT_LIMIT } from '@workflow-service/contract'
import {
  closeSession,
  createSession,
  findSession,
  findVisibleRun,
  listRunsOfSession,
  listSessions,
  listVisibleRuns,
  type RunQuery,
  viewerOf,
} from '@workflow-service/database'
import { ApiError, found } from '@workflow-service/service-kit'
import type { AppContext } from '../../app-context.ts'
import type { Principal } from '../../auth/principal.ts'
import type { AppHandlers } from '../app-handlers.ts'
import { BY_NUMBER, byTime, readCursor, readPage, timeOf, toDate, toPage } from '../paging.ts'

const RUNS = byTime('runs')
const SESSIONS = byTime('sessions')

/** Handlers of runs and sessions. */
export function runHandlers(ctx: AppContext) {
  const { db } = ctx
  const readSession = async (principal: Principal, sessionId: string) => ({
    body: found(await findSession(db, viewerOf(principal), sessionId), 'Session'),
  })
  return {
    listRuns: async ({ principal, query }) => {
      const { status, since, until, workflow_id: workflowId, session_id: sessionId } = query
      const viewer = viewerOf(principal)
      const filter = { status, workflowId, since: toDate(since), until: toDate(until) }
      if (sessionId === undefined) {
        const read = (limit: number, after: RunQuery['after']) =>
          listVisibleRuns(db, viewer, { ...filter, limit, after })
        return { body: await readPage(query, RUNS, read, timeOf) }
      }
      const { limit = LIST_DEFAULT_LIMIT } = query
      const after = readCursor(query, BY_NUMBER)
      return { body: toPage(await listRunsOfSession(db, viewer, sessionId, { ...filter, limit, after }), BY_NUMBER) }
    },
    getRun: async ({ principal, params }) => ({
      body: found(await findVisibleRun(db, viewerOf(principal), params.run_id), 'Run'),
    }),
    listSessions: async ({ principal, query }) => {
      const { limit = LIST_DEFAULT_LIMIT, state } = query
      const isOpen = state === undefined ? undefined : state === 'open'
      const after = readCursor(query, SESSIONS)
      return { body: toPage(await listSessions(db, viewerOf(principal), { isOpen, limit, after }), SESSIONS) }
    },
    getSession: ({ principal, params }) => readSession(principal, params.session_id),
    createSession: async (request) => {
      const { principal, body } = request
      const isNew = await createSession(db, principal.organizationId, body.id, request)
      if (isNew) ctx.hints.add(principal.organizationId, 'sessions')
      const session = await findSession(db, viewerOf(principal), body.id)
      if (!session) throw new ApiError('id_taken', 'This id cannot be used. Choose a new one.')
      return { body: session }
    },
    closeSession: async (request) => {
      const { principal, params } = request
      const isClosed = await closeSession(db, viewerOf(principal), params.session_id, request)
      if (isClosed) ctx.hints.add(principal.organizationId, 'sessions')
      return await readSession(principal, params.session_id)
    },
  } satisfies Partial<AppHandlers>
}
