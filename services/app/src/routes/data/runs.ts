import {
  cancelQueuedRuns,
  cancelRun,
  closeSession,
  createSession,
  findRunPrompts,
  draftRunRules,
  findSession,
  findSessions,
  findVisibleRun,
  findVisibleRuns,
  listRunsOfSession,
  listSessions,
  listVisibleRuns,
  needsSearch,
  searchVisibleRuns,
  viewerOf,
} from '@workflow-service/database'
import { ApiError, notFound, orNotFound } from '@workflow-service/service-kit'
import type { AppServiceContext } from '../../app-service-context.ts'
import type { Principal } from '../../auth/principal.ts'
import type { AppHandlers } from '../app-handlers.ts'
import { toRunPrompts } from './run-prompts.ts'
import { answerIds, answerPage, answerRows, BY_NUMBER, byTime, timeOf, toDate } from '../paging.ts'

const RUNS = byTime('runs')
const SESSIONS = byTime('sessions')

/** Handlers of runs and sessions. */
export function runHandlers(ctx: AppServiceContext) {
  const { db } = ctx
  const readSession = async (principal: Principal, sessionId: string) => ({
    body: orNotFound(await findSession(db, viewerOf(principal), sessionId), 'Session'),
  })
  return {
    listRuns: async ({ principal, query }) => {
      const { status, since, until, workflow_id: workflowId, session_id: sessionId } = query
      const viewer = viewerOf(principal)
      const filter = { status, workflowId, since: toDate(since), until: toDate(until) }
      const { search } = query
      const named = await answerIds(query, (ids) => findVisibleRuns(db, viewer, ids))
      if (named) return named
      if (await needsSearch(db, viewer.organizationId, { search, status, sessionId })) {
        return await answerPage(query, RUNS, async (page) => {
          const { rows, next } = await searchVisibleRuns(db, viewer, { ...filter, ...page, sessionId, search })
          return { rows: await findVisibleRuns(db, viewer, rows), next }
        })
      }
      return sessionId === undefined
        ? await answerRows(query, RUNS, timeOf, (page) => listVisibleRuns(db, viewer, { ...filter, ...page }))
        : await answerPage(query, BY_NUMBER, (page) => listRunsOfSession(db, viewer, sessionId, { ...filter, ...page }))
    },
    getRun: async ({ principal, params }) => ({
      body: orNotFound(await findVisibleRun(db, viewerOf(principal), params.run_id), 'Run'),
    }),
    cancelRun: async (request) => {
      const { principal, params, requestId } = request
      const outcome = await cancelRun(db, viewerOf(principal), params.run_id, request)
      if (outcome.kind === 'not_found') throw notFound('Run')
      if (outcome.kind === 'ended') throw new ApiError('run_ended', 'This run has ended already.')
      ctx.sessionNotifier.notify(outcome.sessionId, requestId)
      ctx.changeNotices.add(principal.organizationId, 'runs', 'sessions')
      return { body: orNotFound(await findVisibleRun(db, viewerOf(principal), params.run_id), 'Run') }
    },
    cancelQueuedRuns: async (request) => {
      const { principal, body } = request
      const { cancelled, isMore } = await cancelQueuedRuns(db, viewerOf(principal), body, request)
      ctx.changeNotices.add(principal.organizationId, 'runs', 'sessions')
      return { body: { cancelled, is_more: isMore } }
    },
    getRunPrompts: async ({ principal, params }) => ({
      body: toRunPrompts(orNotFound(await findRunPrompts(db, viewerOf(principal), params.run_id), 'Run')),
    }),
    getRulesDraft: async ({ principal, params }) => {
      const run = orNotFound(await findVisibleRun(db, viewerOf(principal), params.run_id), 'Run')
      const { error, steps, workflow } = run
      const draft = { workflowId: workflow.id, error, steps }
      return {
        body: { content: orNotFound(await draftRunRules(db, principal.organizationId, draft), 'Draft of rules') },
      }
    },
    listSessions: async ({ principal, query }) => {
      const isOpen = query.state === undefined ? undefined : query.state === 'open'
      const viewer = viewerOf(principal)
      return (
        (await answerIds(query, (ids) => findSessions(db, viewer, ids))) ??
        (await answerPage(query, SESSIONS, (page) => listSessions(db, viewer, { isOpen, ...page })))
      )
    },
    getSession: ({ principal, params }) => readSession(principal, params.session_id),
    createSession: async (request) => {
      const { principal, body } = request
      const isNew = await createSession(db, principal.organizationId, body.id, request)
      if (isNew) ctx.changeNotices.add(principal.organizationId, 'sessions')
      const session = await findSession(db, viewerOf(principal), body.id)
      if (!session) throw new ApiError('id_taken', 'This id cannot be used. Choose a new one.')
      return { body: session }
    },
    closeSession: async (request) => {
      const { principal, params } = request
      const isClosed = await closeSession(db, viewerOf(principal), params.session_id, request)
      if (isClosed) ctx.changeNotices.add(principal.organizationId, 'sessions')
      return await readSession(principal, params.session_id)
    },
  } satisfies Partial<AppHandlers>
}
