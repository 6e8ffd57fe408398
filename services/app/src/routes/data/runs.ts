import { type AppResponseBody, listConversation, readRefusal } from '@workflow-service/contract'
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
  type Viewer,
} from '@workflow-service/database'
import { ApiError, byTime, notFound, orNotFound, pageResponse, toDate } from '@workflow-service/service-kit'
import type { AppServiceContext } from '../../app-service-context.ts'
import type { AppHandlers } from '../app-handlers.ts'
import { BY_NUMBER, pageOfIds, pageOfRows, timeOf } from '../paging.ts'

const RUNS = byTime('runs')
const SESSIONS = byTime('sessions')

/** Handlers of runs and sessions. */
export function runHandlers({ db, sessionNotifier, changeNotices }: AppServiceContext) {
  const readRun = async (viewer: Viewer, id: string) => orNotFound(await findVisibleRun(db, viewer, id), 'Run')
  const readSession = async (viewer: Viewer, id: string) => orNotFound(await findSession(db, viewer, id), 'Session')
  return {
    listRuns: async ({ principal, query }) => {
      const { status, search, workflow_id: workflowId, session_id: sessionId, needs_attention: needsAttention } = query
      const filter = { status, workflowId, needsAttention, since: toDate(query.since), until: toDate(query.until) }
      const named = await pageOfIds(query, (ids) => findVisibleRuns(db, principal, ids))
      if (named) return named
      if (await needsSearch(db, principal.organizationId, { ...filter, search, sessionId })) {
        return await pageResponse(query, RUNS, async (page) => {
          const { rows, next } = await searchVisibleRuns(db, principal, { ...filter, ...page, sessionId, search })
          return { rows: await findVisibleRuns(db, principal, rows), next }
        })
      }
      if (sessionId === undefined) {
        return await pageOfRows(query, RUNS, timeOf, (page) => listVisibleRuns(db, principal, { ...filter, ...page }))
      }
      return await pageResponse(query, BY_NUMBER, (page) =>
        listRunsOfSession(db, principal, sessionId, { ...filter, ...page }),
      )
    },
    getRun: ({ principal, params }) => readRun(principal, params.run_id),
    cancelRun: async (request) => {
      const { principal, params, requestId } = request
      const outcome = await cancelRun(db, principal, params.run_id, request)
      if (outcome.kind === 'not_found') throw notFound('Run')
      if (outcome.kind === 'ended') throw new ApiError('run_ended', 'This run has ended already.')
      sessionNotifier.notify(outcome.sessionId, requestId)
      changeNotices.add(principal.organizationId, 'runs', 'sessions')
      return await readRun(principal, params.run_id)
    },
    cancelQueuedRuns: async (request) => {
      const { principal, body } = request
      const { cancelled, isMore } = await cancelQueuedRuns(db, principal, body, request)
      changeNotices.add(principal.organizationId, 'runs', 'sessions')
      return { cancelled, is_more: isMore }
    },
    getRunPrompts: async ({ principal, params }) =>
      toRunPrompts(orNotFound(await findRunPrompts(db, principal, params.run_id), 'Run')),
    getRulesDraft: async ({ principal, params }) => {
      const run = await readRun(principal, params.run_id)
      const refusal = orNotFound(readRefusal(run), 'Draft of rules')
      const content = await draftRunRules(db, principal.organizationId, run.workflow.id, refusal)
      return { content: orNotFound(content, 'Draft of rules') }
    },
    listSessions: async ({ principal, query }) => {
      const isOpen = query.state === undefined ? undefined : query.state === 'open'
      return (
        (await pageOfIds(query, (ids) => findSessions(db, principal, ids))) ??
        (await pageResponse(query, SESSIONS, (page) => listSessions(db, principal, { isOpen, ...page })))
      )
    },
    getSession: ({ principal, params }) => readSession(principal, params.session_id),
    createSession: async (request) => {
      const { principal, body } = request
      const isNew = await createSession(db, body.id, request)
      if (isNew) changeNotices.add(principal.organizationId, 'sessions')
      const session = await findSession(db, principal, body.id)
      if (!session) throw new ApiError('id_taken', 'This id cannot be used. Choose a new one.')
      return session
    },
    closeSession: async (request) => {
      const { principal, params } = request
      const isClosed = await closeSession(db, principal, params.session_id, request)
      if (isClosed) changeNotices.add(principal.organizationId, 'sessions')
      return await readSession(principal, params.session_id)
    },
  } satisfies Partial<AppHandlers>
}

type Found = NonNullable<Awaited<ReturnType<typeof findRunPrompts>>>

/**
 * The requests of a run to its model (contract README, "The prompt of a model"): each names its prompt, and how many of
 * the messages it had after the first one. Requests of a run that was recorded without prompts are left out.
 */
function toRunPrompts({ prompts, steps }: Found): AppResponseBody<'getRunPrompts'> {
  const [, ...messages] = listConversation('', steps)
  const promptAt = (position: number): number => prompts.findLastIndex((prompt) => prompt.position <= position)
  const countBefore = (position: number): number =>
    messages.filter((message) => message.position !== null && message.position < position).length
  const answers = steps.flatMap(({ kind, position }) => (kind === 'model_answer' ? [position] : []))
  const askedPosition = prompts.at(-1)?.askedPosition ?? -1
  const asked = askedPosition > (answers.at(-1) ?? -1) ? [...answers, askedPosition] : answers
  return {
    prompts: prompts.map(({ prompt: { omitted_bytes = null, ...prompt } }) => ({ ...prompt, omitted_bytes })),
    messages: messages.map(({ role, ...message }) => ({
      role,
      content: 'text' in message ? message.text : 'parts' in message ? message.parts : message.results,
    })),
    requests: asked.flatMap((position, index) => {
      const prompt = promptAt(position)
      const request = { turn: index + 1, messages: countBefore(position), is_answered: index < answers.length }
      return prompt === -1 ? [] : [{ ...request, prompt }]
    }),
  }
}
