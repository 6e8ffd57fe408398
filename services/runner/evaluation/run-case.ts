import { createHash } from 'node:crypto'
import { compile, isRulesFile, type JournalStep, type NewJournalStep, STEP_DATA } from '@workflow-service/contract'
import type { ClaimedRun, EarlierRun, SourceForAgent } from '@workflow-service/database'
import { checkPayload, readAnswerText, toDeliveryResult } from '@workflow-service/dispatcher'
import { createLogger, NO_TRACING, Registry } from '@workflow-service/service-kit'
import type { Agent, AgentFile, DeliveryResult } from '../src/agent/agent.ts'
import { openAgentSteps } from '../src/agent/agent-steps.ts'
import { sendDelivery } from '../src/agent/deliveries.ts'
import { createRunnerMetrics } from '../src/metrics.ts'
import type { ActiveLease } from '../src/runs/active-lease.ts'
import type { DispatcherClient } from '../src/runs/dispatcher-client.ts'
import { executeRun } from '../src/runs/execute-run.ts'
import type { RunStore } from '../src/runs/run-store.ts'
import type { EndpointAnswer, EvaluationCase } from './case-schema.ts'
import { toText } from './read-cases.ts'

/** A payload that the agent asked to send, and what became of it. */
export interface ObservedDelivery {
  readonly source: string
  readonly payload: Record<string, unknown>
  readonly outcome: DeliveryResult['outcome']
}

/** What an agent did with a case. */
export interface ObservedRun {
  readonly status: 'succeeded' | 'failed'
  /** The code and the explanation of a failed run. */
  readonly error: string | null
  readonly deliveries: readonly ObservedDelivery[]
  readonly steps: readonly JournalStep[]
  readonly durationMs: number
}

const stepChecks = new Map(Object.entries(STEP_DATA).map(([kind, schema]) => [kind, compile(schema)]))
const logger = createLogger({ service: 'evaluate', level: 'silent' })
const runnerMetrics = createRunnerMetrics(new Registry(), {
  activeSessions: () => 0,
  slots: () => 0,
})

/**
 * Executes the case's run with the runner's `executeRun`: the journal, the attempts and the error are those of production.
 * In memory are only the tables and the endpoints. A payload passes the dispatcher's own comparison with the example, and
 * an endpoint's answer becomes an outcome by the dispatcher's own rules.
 *
 * All ids but those of deliveries follow from the case and `repeat`, so that a model gets the same requests each time.
 */
export async function runCase(agent: Agent, entry: EvaluationCase, repeat: number): Promise<ObservedRun> {
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
    error: outcome.kind === 'failed' ? outcome.error : null,
    deliveries: session.deliveriesOf(number),
    steps: session.stepsOf(number),
    durationMs,
  }
}

type History = NonNullable<EvaluationCase['history']>[number]

/** Writes the journal of an earlier run, as an agent did that sent these payloads. */
function createPastAgent({ sent = [], said, context }: History): Agent {
  return async (run) => {
    await run.append([{ kind: 'message', data: { agent: 'builtin', text: toText(context) } }])
    const sources = await run.listSources()
    for (const [index, { source, payload }] of sent.entries()) {
      const sourceId = sources.find(({ name }) => name === source)?.id ?? ''
      const delivery = { id: toUuid(`${run.run.id} ${index}`), source_id: sourceId, source_name: source, payload }
      const call = { call_id: `call_${index + 1}`, tool: 'builtin', delivery }
      await run.append([{ kind: 'tool_call', data: call }])
      await run.append([await sendDelivery(run, openAgentSteps(run), call)])
    }
    if (said === undefined) return
    const parts = [{ type: 'text' as const, text: said }]
    const usage = { input_tokens: null, output_tokens: null }
    const answer = { turn: 1, model: 'earlier', parts, finish_reason: 'stop', ...usage }
    await run.append([{ kind: 'model_answer', data: answer }])
  }
}

function createSession(entry: EvaluationCase, id: (what: string) => string) {
  const { workflow } = entry
  const sessionId = id('session')
  const organizationId = id('organization')
  const workflowId = id('workflow')
  const inputMessage = toText(workflow.input_message ?? '')
  const sources = entry.sources
    .map(({ name, description = '', example }): SourceForAgent => ({
      id: id(`source ${name}`),
      name,
      description,
      exampleRequestBody: example,
    }))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
  const files = (workflow.files ?? []).map(({ path, content }) => ({ ...toFile(path, id), content: toText(content) }))
  const journals = new Map<string, JournalStep[]>()
  const finished: EarlierRun[] = []
  const deliveries = new Map<string, ObservedDelivery[]>()
  const endpoints = new Map(entry.sources.map(({ name, endpoint }) => [name, [...(endpoint ?? [{ status: 204 }])]]))
  /** By run: earlier runs have answers of their own. */
  const pastAnswers = new Map(
    (entry.history ?? []).map(({ sent = [] }, index) => [
      id(`run ${index + 1}`),
      sent.map(({ answer }) => answer ?? { status: 204 }),
    ]),
  )
  const stepsOf = (runId: string): JournalStep[] => journals.get(runId) ?? []

  const runStore: RunStore = {
    readSteps: (_lease, runId) => Promise.resolve([...stepsOf(runId)]),
    async appendSteps(_lease, runId, position, added) {
      const steps = stepsOf(runId)
      if (position !== steps.length) throw new Error(`The journal has ${steps.length} steps, not ${position}`)
      journals.set(runId, [...steps, ...added.map((step, index) => toStored(step, position + index))])
    },
    recordPrompt: () => Promise.resolve(),
    countAttempt: () => Promise.resolve(1),
    listEarlierRuns: (_lease, _organizationId, { number, limit }) =>
      Promise.resolve(finished.slice(0, number - 1).slice(-limit)),
    listSmallSources: () => Promise.resolve(sources),
    listSourceNames: () => Promise.resolve(sources.map(({ id: sourceId, name }) => ({ id: sourceId, name }))),
    readSources: (_lease, _organizationId, ids) =>
      Promise.resolve(ids.flatMap((sourceId) => sources.find((source) => source.id === sourceId) ?? [])),
    searchSources: (_lease, _organizationId, words, limit) =>
      Promise.resolve(
        sources
          .filter(({ name, description }) =>
            words.some((word) => `${name} ${description}`.toLowerCase().includes(word)),
          )
          .slice(0, limit),
      ),
    listFiles: () => Promise.resolve(files),
    readFile: (_lease, _organizationId, _workflowId, fileId) =>
      Promise.resolve(files.find((file) => file.id === fileId)?.content),
    readApproval: () => Promise.resolve(undefined),
    parkForApproval: () => Promise.reject(new Error('The sources of a case need no approval')),
  }

  const results = new Map<string, DeliveryResult>()
  const dispatcher: DispatcherClient = {
    deliver(_lease, { id: deliveryId, body }) {
      const known = results.get(deliveryId)
      if (known) return Promise.resolve(known)
      const { source_id: sourceId, run_id: runId } = body
      const payload = JSON.parse(JSON.stringify(body.payload)) as Record<string, unknown>
      const isPlanned = stepsOf(String(runId)).some(
        (step) => step.kind === 'tool_call' && step.data.delivery?.id === deliveryId,
      )
      if (!isPlanned) throw new Error('The delivery is not in the journal')
      const source = sources.find((candidate) => candidate.id === sourceId)
      if (!source) throw new Error('There is no such source')
      const invalid = checkPayload(source.exampleRequestBody ?? {}, payload, JSON.stringify(payload))
      const result = invalid ?? toResult(nextAnswer(String(runId), source.name))
      const observed = deliveries.get(String(runId)) ?? []
      deliveries.set(String(runId), [...observed, { source: source.name, payload, outcome: result.outcome }])
      results.set(deliveryId, result)
      return Promise.resolve(result)
    },
    close: () => Promise.resolve(),
  }

  function nextAnswer(runId: string, source: string): EndpointAnswer {
    const past = pastAnswers.get(runId)
    if (past) return past.shift() ?? { status: 204 }
    const answers = endpoints.get(source) ?? []
    return (answers.length > 1 ? answers.shift() : answers[0]) ?? { status: 204 }
  }

  const { signal } = new AbortController()
  const lease: ActiveLease = { sessionId, epoch: 1, signal, abort: signal, isLost: false, isEnding: false }
  const ctxOf = (agent: Agent) => ({
    agent,
    dispatcher,
    runStore,
    timing: { retryMs: 1 },
    runnerMetrics,
    tracing: NO_TRACING,
    logger,
  })
  return {
    execute(agent: Agent, { number, context }: { number: number; context: string }) {
      const run: ClaimedRun = {
        id: id(`run ${number}`),
        organizationId,
        sessionId,
        number,
        workflow: {
          id: workflowId,
          name: workflow.name,
          description: toText(workflow.description),
          rulesFileId: files.find(isRulesFile)?.id ?? null,
          rulesLikeFiles: files.map(({ name, path }) => ({ name, path })),
        },
        inputMessage,
        context,
        requestId: 'evaluate',
        trace: null,
        acceptedAt: '2026-01-31T09:00:00.000Z',
        attempts: 1,
        isFirst: true,
        waitedMs: 0,
      }
      return executeRun(ctxOf(agent), lease, run, sources)
    },
    finish({ number, ...run }: Pick<EarlierRun, 'context' | 'status' | 'error'> & { number: number }) {
      const runId = id(`run ${number}`)
      finished.push({ runId, workflowName: workflow.name, inputMessage, ...run, steps: stepsOf(runId) })
    },
    stepsOf: (number: number) => stepsOf(id(`run ${number}`)),
    deliveriesOf: (number: number) => deliveries.get(id(`run ${number}`)) ?? [],
  }
}

/** The step as PostgreSQL returns it. @throws TypeError for a step that does not follow its schema. */
function toStored(step: NewJournalStep, position: number): JournalStep {
  const stored = JSON.parse(JSON.stringify(step)) as NewJournalStep
  const check = stepChecks.get(stored.kind)
  if (!check?.(stored.data)) throw new TypeError(`Not a ${stored.kind} step: ${JSON.stringify(check?.errors)}`)
  return { ...stored, position, createdAt: new Date() }
}

/** An evaluation has no secrets. */
const redact = (text: string): string => text

function toResult(given: EndpointAnswer): DeliveryResult {
  const durationMs = 0
  if (given === 'time_out') {
    const detail = 'the endpoint took too long to answer'
    return toDeliveryResult({ kind: 'timed_out', phase: 'answer', wasSent: true, detail, durationMs }, redact)
  }
  if (given === 'unreachable') {
    const failure = { cause: 'connection_refused', tlsError: null, wasSent: false } as const
    return toDeliveryResult(
      { kind: 'unreachable', ...failure, detail: 'the endpoint refuses connections', durationMs },
      redact,
    )
  }
  // As in the dispatcher, only the text of a 2xx answer is read.
  const text = given.body === undefined || given.status > 299 ? null : readAnswerText(Buffer.from(given.body))
  return toDeliveryResult({ kind: 'answered', status: given.status, location: null, text, durationMs }, redact)
}

function toFile(path: string, id: (what: string) => string): AgentFile {
  const parts = path.split('/')
  return { id: id(`file ${path}`), name: parts.at(-1) ?? path, path: parts.slice(0, -1) }
}

/** A UUID that follows from the text. */
function toUuid(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}
