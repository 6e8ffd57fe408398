import { checkPayload } from '@workflow-service/contract'
import { toDeliveryStep } from '@workflow-service/contract/delivery-step'
import type { EarlierRun } from '@workflow-service/database'
import { readAnswerText, toDeliveryResult } from '@workflow-service/dispatcher'
import type { Agent, PayloadResult } from '../src/agent/agent.ts'
import { RunError } from '../src/run-errors.ts'
import { createInMemoryRun, webhookSource } from '../test/support/in-memory-run.ts'
import type { EndpointAnswer, EvaluationCase } from './case-schema.ts'
import { toText } from './read-cases.ts'

/** A payload that the agent asked to send, and what became of it. */
export interface ObservedDelivery {
  readonly source: string
  readonly payload: Record<string, unknown>
  readonly outcome: PayloadResult['outcome']
}

/** What an agent did with a case. */
export type ObservedRun = Awaited<ReturnType<typeof runCase>>

/**
 * Executes the case's run. In memory are only the tables and the endpoints: a payload passes the dispatcher's own
 * comparison with the example, and an endpoint's answer becomes an outcome by the dispatcher's own rules. What a model
 * is asked follows from the case, so that an answer can be recorded.
 */
export async function runCase(agent: Agent, entry: EvaluationCase) {
  const { id, workflow, history = [] } = entry
  const sources = entry.sources
    .map(({ name, example, description }) => webhookSource(name, example, description))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
  const answers = new Map(entry.sources.map(({ name, endpoint = [] }) => [name, [...endpoint]]))
  const deliveries: ObservedDelivery[] = []
  const run = createInMemoryRun({
    sessionId: id,
    name: workflow.name,
    description: toText(workflow.description),
    inputMessage: toText(workflow.input_message ?? ''),
    context: toText(entry.context),
    sources,
    files: (workflow.files ?? []).map(({ path, content }) => {
      const folders = path.split('/')
      return { id: path, name: folders.pop() ?? path, path: folders, content: toText(content) }
    }),
    history: history.map((earlier, index) => toEarlierRun(earlier, { runId: `${id} ${index}`, entry })),
    endpoint({ sourceId, payload: given }) {
      const { name, exampleRequestBody: example } = sources.find((source) => source.id === sourceId)!
      const text = JSON.stringify(given)
      const payload = JSON.parse(text) as Record<string, unknown>
      const left = answers.get(name) ?? []
      const result =
        checkPayload(example, payload, text) ?? toResult((left.length > 1 ? left.shift() : left[0]) ?? NO_CONTENT)
      deliveries.push({ source: name, payload, outcome: result.outcome })
      return result
    },
  })
  const startedMs = performance.now()
  const error = await run.execute(agent).then(
    () => null,
    (thrown: unknown) => {
      if (thrown instanceof RunError) return `${thrown.code}: ${thrown.message}`
      throw thrown
    },
  )
  const status = error === null ? ('succeeded' as const) : ('failed' as const)
  return { status, error, deliveries, steps: run.steps, durationMs: performance.now() - startedMs }
}

const NO_CONTENT: EndpointAnswer = { status: 204 }

function toEarlierRun(
  { context, status = 'succeeded', error, said, sent = [] }: NonNullable<EvaluationCase['history']>[number],
  { runId, entry }: { readonly runId: string; readonly entry: EvaluationCase },
): Omit<EarlierRun, 'number'> {
  const steps = sent.flatMap(({ source, payload, answer = NO_CONTENT }, index) => {
    const delivery = { id: `${runId} ${index}`, source_id: source, source_name: source, payload }
    const call = { call_id: `call_${index + 1}`, tool: 'builtin', delivery }
    return [{ kind: 'tool_call' as const, data: call }, toDeliveryStep(entry.id, call, toResult(answer))]
  })
  const parts = said === undefined ? [] : [{ type: 'text' as const, text: said }]
  const usage = { input_tokens: null, output_tokens: null }
  const answer = { turn: 1, model: 'earlier', parts, finish_reason: 'stop', ...usage }
  return {
    runId,
    workflowName: entry.workflow.name,
    inputMessage: toText(entry.workflow.input_message ?? ''),
    context: toText(context),
    status,
    error: error ?? null,
    steps: [...steps, { kind: 'model_answer' as const, data: answer }].map((step, position) => {
      return { ...step, position, createdAt: new Date(0) }
    }),
  }
}

/** An evaluation has no secrets. */
const convert = (answer: Parameters<typeof toDeliveryResult>[0]) => toDeliveryResult(answer, (text) => text)

function toResult(given: EndpointAnswer): PayloadResult {
  const durationMs = 0
  if (given === 'time_out') {
    return convert({ kind: 'timed_out', phase: 'answer', detail: 'the endpoint took too long to answer', durationMs })
  }
  if (given === 'unreachable') {
    const detail = 'the endpoint refuses connections'
    return convert({ kind: 'unreachable', cause: 'connection_refused', detail, durationMs })
  }
  // As in the dispatcher, only the text of a 2xx answer is read.
  const text = given.body === undefined || given.status > 299 ? null : readAnswerText(Buffer.from(given.body))
  return convert({ kind: 'answered', status: given.status, location: null, text, durationMs })
}
