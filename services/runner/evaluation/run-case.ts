import { createHash } from 'node:crypto'
import { checkPayload } from '@workflow-service/contract'
import type { EarlierRun, SourceForAgent } from '@workflow-service/database'
import { readAnswerText, toDeliveryResult } from '@workflow-service/dispatcher'
import { createLogger, NO_TRACING, Registry } from '@workflow-service/service-kit'
import type { Agent, DeliveryResult } from '../src/agent/agent.ts'
import { openAgentSteps } from '../src/agent/agent-steps.ts'
import { sendDelivery } from '../src/agent/deliveries.ts'
import { createRunnerMetrics } from '../src/metrics.ts'
import type { ActiveLease } from '../src/runs/active-lease.ts'
import { executeRun } from '../src/runs/execute-run.ts'
import type { EndpointAnswer, EvaluationCase } from './case-schema.ts'
import { createInMemoryDispatcher, createInMemoryStore, type InMemoryFile, toClaimedRun } from './in-memory-services.ts'
import { toText } from './read-cases.ts'

/** A payload that the agent asked to send, and what became of it. */
export interface ObservedDelivery {
  readonly source: string
  readonly payload: Record<string, unknown>
  readonly outcome: DeliveryResult['outcome']
}

/** What an agent did with a case. */
export type ObservedRun = Awaited<ReturnType<typeof runCase>>

const logger = createLogger({ service: 'evaluate', level: 'silent' })
const runnerMetrics = createRunnerMetrics(new Registry(), {
  activeSessions: () => 0,
  slots: () => 0,
})

/**
 * Executes the case's run with the runner's `executeRun`: the journal, the attempts and the error are those of
 * production. In memory are only the tables and the endpoints. A payload passes the dispatcher's own comparison with
 * the example, and an endpoint's answer becomes an outcome by the dispatcher's own rules.
 *
 * All ids but those of deliveries follow from the case and `repeat`, so that a model gets the same requests each time.
 */
export async function runCase(agent: Agent, entry: EvaluationCase, repeat: number) {
  const id = (what: string): string => toUuid(`${entry.id} ${repeat} ${what}`)
  const session = createSession(entry, id)
  for (const [index, earlier] of (entry.history ?? []).entries()) {
    const number = index + 1
    await session.execute(createPastAgent(earlier), { number, context: toText(earlier.context) })
    const { status = 'succeeded', error = null } = earlier
    session.finish({ number, context: toText(earlier.context), status, error })
  }
  const number = (entry.history?.length ?? 0) + 1
  const startedMs = performance.now()
  const outcome = await session.execute(agent, { number, context: toText(entry.context) })
  const durationMs = performance.now() - startedMs
  if (outcome.kind !== 'succeeded' && outcome.kind !== 'failed') throw new Error(`The run was ${outcome.kind}`)
  return {
    status: outcome.kind,
    /** The code and the explanation of a failed run. */
    error: outcome.kind === 'failed' ? outcome.error : null,
    deliveries: session.deliveriesOf(number),
    steps: session.stepsOf(number),
    durationMs,
  }
}

type History = NonNullable<EvaluationCase['history']>[number]

/** Creates an agent that sends these payloads regardless of the context, such as one that executed an earlier run. */
export function createPastAgent({ sent = [], said, context }: History): Agent {
  return async (run) => {
    await run.append([{ kind: 'message', data: { agent: 'builtin', text: toText(context) } }])
    const sources = await run.listSources()
    for (const [index, { source, payload }] of sent.entries()) {
      const sourceId = sources.find(({ name }) => name === source)?.id ?? ''
      const delivery = { id: toUuid(`${run.run.id} ${index}`), source_id: sourceId, source_name: source, payload }
      const call = { call_id: `call_${index + 1}`, tool: 'builtin', delivery }
      await run.append([{ kind: 'tool_call', data: call }])
      await sendDelivery(run, openAgentSteps(run), call)
    }
    if (said === undefined) return
    const parts = [{ type: 'text' as const, text: said }]
    const usage = { input_tokens: null, output_tokens: null }
    const answer = { turn: 1, model: 'earlier', parts, finish_reason: 'stop', ...usage }
    await run.append([{ kind: 'model_answer', data: answer }])
  }
}

/** The runs of a case: those of its history, then its own. */
function createSession(entry: EvaluationCase, id: (what: string) => string) {
  const { workflow } = entry
  const [sessionId, organizationId] = [id('session'), id('organization')]
  const history: Omit<EarlierRun, 'number'>[] = []
  const content = {
    sources: entry.sources
      .map(({ name, description = '', example }): SourceForAgent => {
        return { id: id(`source ${name}`), name, description, exampleRequestBody: example }
      })
      .toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    files: (workflow.files ?? []).map((file) => toFile(file, id)),
    history,
  }
  const memory = createInMemoryStore(content)
  const { store: runStore, stepsOf } = memory
  const deliveries = new Map<string, ObservedDelivery[]>()
  const nextAnswer = createEndpoints(entry, id)
  const dispatcher = createInMemoryDispatcher(memory, ({ sourceId, payload: given }, runId) => {
    const payload = JSON.parse(JSON.stringify(given)) as Record<string, unknown>
    const source = content.sources.find((candidate) => candidate.id === sourceId)
    if (!source) throw new Error('There is no such source')
    const invalid = checkPayload(source.exampleRequestBody, payload, JSON.stringify(payload))
    const result = invalid ?? toResult(nextAnswer(runId, source.name))
    const observed = deliveries.get(runId) ?? []
    deliveries.set(runId, [...observed, { source: source.name, payload, outcome: result.outcome }])
    return result
  })

  const { signal } = new AbortController()
  const lease: ActiveLease = { sessionId, epoch: 1, signal, abort: signal, isLost: false, isEnding: false }
  const start = {
    organizationId,
    sessionId,
    workflow: { id: id('workflow'), name: workflow.name, description: toText(workflow.description) },
    inputMessage: toText(workflow.input_message ?? ''),
    acceptedAt: '2026-01-31T09:00:00.000Z',
  }
  return {
    execute(agent: Agent, { number, context }: { number: number; context: string }) {
      const run = toClaimedRun(content, { ...start, id: id(`run ${number}`), number, context })
      const ctx = { agent, dispatcher, runStore, timing: { retryMs: 1 }, runnerMetrics, tracing: NO_TRACING, logger }
      return executeRun(ctx, lease, run, content.sources)
    },
    finish({ number, ...run }: Pick<EarlierRun, 'context' | 'status' | 'error'> & { number: number }) {
      const runId = id(`run ${number}`)
      const { inputMessage } = start
      history.push({ runId, workflowName: workflow.name, inputMessage, ...run, steps: stepsOf(runId) })
    },
    stepsOf: (number: number) => stepsOf(id(`run ${number}`)),
    deliveriesOf: (number: number) => deliveries.get(id(`run ${number}`)) ?? [],
  }
}

/** Gives the next answer of a source's endpoint. Earlier runs have answers of their own. */
function createEndpoints({ sources, history = [] }: EvaluationCase, id: (what: string) => string) {
  const endpoints = new Map(sources.map(({ name, endpoint }) => [name, [...(endpoint ?? [])]]))
  const pastAnswers = new Map(
    history.map(({ sent = [] }, index) => [id(`run ${index + 1}`), sent.map(({ answer }) => answer)]),
  )
  return (runId: string, source: string): EndpointAnswer => {
    const past = pastAnswers.get(runId)
    const answers = endpoints.get(source) ?? []
    const answer = past ? past.shift() : answers.length > 1 ? answers.shift() : answers[0]
    return answer ?? { status: 204 }
  }
}

/** An evaluation has no secrets. */
const redact = (text: string): string => text

function toResult(given: EndpointAnswer): DeliveryResult {
  const durationMs = 0
  if (given === 'time_out') {
    const detail = 'the endpoint took too long to answer'
    return toDeliveryResult({ kind: 'timed_out', phase: 'answer', detail, durationMs }, redact)
  }
  if (given === 'unreachable') {
    const failure = { cause: 'connection_refused', tlsError: null } as const
    return toDeliveryResult(
      { kind: 'unreachable', ...failure, detail: 'the endpoint refuses connections', durationMs },
      redact,
    )
  }
  // As in the dispatcher, only the text of a 2xx answer is read.
  const text = given.body === undefined || given.status > 299 ? null : readAnswerText(Buffer.from(given.body))
  return toDeliveryResult({ kind: 'answered', status: given.status, location: null, text, durationMs }, redact)
}

function toFile(
  { path, content }: NonNullable<EvaluationCase['workflow']['files']>[number],
  id: (what: string) => string,
): InMemoryFile {
  const parts = path.split('/')
  return { id: id(`file ${path}`), name: parts.at(-1) ?? path, path: parts.slice(0, -1), content: toText(content) }
}

/** A UUID that follows from the text. */
function toUuid(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}
