import { randomUUID } from 'node:crypto'
import {
  compile,
  isRulesFile,
  type JournalStep,
  type NewJournalStep,
  type RunPrompt,
  STEP_DATA,
} from '@workflow-service/contract'
import { RunInterruptedError } from '../../src/run-errors.ts'
import { toAgentSource } from '../../src/runs/agent-run.ts'
import {
  type Agent,
  type AgentFile,
  type AgentRun,
  type AgentWebhookSource,
  type DeliveryRequest,
  type DeliveryResult,
  type EarlierRun,
  SOURCES_PER_READ,
} from '../../src/agent/agent.ts'

/** Simulates the death of the runner process: nothing happens after it. */
export class Crash extends Error {}

export interface InMemoryRunOptions {
  name?: string
  description?: string
  inputMessage?: string
  context?: string
  sources?: readonly AgentWebhookSource[]
  files?: readonly (AgentFile & { content: string })[]
  history?: readonly EarlierRun[]
  /** The journal of earlier attempts. */
  steps?: readonly NewJournalStep[]
  /** The endpoint behind every webhook source; 204 by default. */
  endpoint?: (request: DeliveryRequest) => Partial<DeliveryResult>
}

/** A run whose journal and delivery log are in memory instead of behind a database and a dispatcher. */
export interface InMemoryRun {
  readonly steps: readonly JournalStep[]
  /** The payloads that were sent, in order. */
  readonly sent: readonly DeliveryRequest[]
  /** What the model was asked with, by the position of the next step. */
  readonly prompts: readonly { readonly position: number; readonly prompt: RunPrompt }[]
  /** Makes the agent end at its next step boundary. */
  interrupt(): void
  /** Makes the agent abandon calls under way. */
  abort(): void
  /** Executes the run, or resumes it from its journal. */
  execute(agent: Agent): Promise<void>
  /** Makes the next attempt crash right before or right after its nth write or delivery, counted from 1. */
  crashAt(point: CrashPoint | null): void
}

interface CrashPoint {
  readonly operation: number
  readonly when: 'before' | 'after'
}

const checks = new Map(Object.entries(STEP_DATA).map(([kind, schema]) => [kind, compile(schema)]))

/** A webhook source of an organization. */
export function webhookSource(
  name: string,
  exampleRequestBody: Record<string, unknown>,
  description = '',
): AgentWebhookSource {
  return toAgentSource({ id: randomUUID(), name, description, exampleRequestBody })
}

export function createInMemoryRun(options: InMemoryRunOptions = {}): InMemoryRun {
  const steps: JournalStep[] = []
  const sent: DeliveryRequest[] = []
  const prompts: { position: number; prompt: RunPrompt }[] = []
  const results = new Map<string, DeliveryResult>()
  const interrupting = new AbortController()
  const aborting = new AbortController()
  let crash: CrashPoint | null = null
  let operations = 0

  /** Like a database or a dispatcher: the effect remains even if the caller crashes before it gets the answer. */
  function operate<Result>(operation: () => Result): Promise<Result> {
    operations += 1
    if (crash?.operation === operations && crash.when === 'before') return Promise.reject(new Crash())
    const result = operation()
    if (crash?.operation === operations) return Promise.reject(new Crash())
    return Promise.resolve(result)
  }

  function append(added: readonly NewJournalStep[]): void {
    for (const step of added) {
      const stored = JSON.parse(JSON.stringify(step)) as NewJournalStep
      const check = checks.get(stored.kind)
      if (!check?.(stored.data)) throw new TypeError(`not a ${stored.kind} step: ${JSON.stringify(check?.errors)}`)
      steps.push({ ...stored, position: steps.length, createdAt: new Date() })
    }
  }

  function deliver(request: DeliveryRequest): DeliveryResult {
    const known = results.get(request.deliveryId)
    if (known) return known
    const isPlanned = steps.some((step) => step.kind === 'tool_call' && step.data.delivery?.id === request.deliveryId)
    if (!isPlanned) throw new TypeError('the delivery is not in the journal')
    sent.push(request)
    const answer = options.endpoint?.(request) ?? {}
    const result = { outcome: 'accepted', status: 204, answer: null, reason: null, ...answer } as const
    results.set(request.deliveryId, result)
    return result
  }

  append(options.steps ?? [])
  const run: AgentRun['run'] = {
    id: randomUUID(),
    organizationId: randomUUID(),
    sessionId: randomUUID(),
    workflow: {
      id: randomUUID(),
      name: options.name ?? 'Orders',
      description: options.description ?? '',
      rulesFileId: options.files?.find(isRulesFile)?.id ?? null,
      rulesLikeFiles: (options.files ?? []).map(({ name, path }) => ({ name, path })),
    },
    inputMessage: options.inputMessage ?? '',
    context: options.context ?? '',
    requestId: 'test-request',
    acceptedAt: '2026-01-31T08:59:58.123Z',
  }
  const history = options.history ?? []

  return {
    steps,
    sent,
    prompts,
    interrupt: () => interrupting.abort(new RunInterruptedError()),
    abort() {
      interrupting.abort(new RunInterruptedError())
      aborting.abort(new RunInterruptedError())
    },
    crashAt(point) {
      crash = point
    },
    execute(agent) {
      operations = 0
      return agent({
        run,
        steps: [...steps],
        signal: interrupting.signal,
        abort: aborting.signal,
        history: (limit) => Promise.resolve({ runs: history.slice(-limit), total: history.length }),
        listSources: () => Promise.resolve((options.sources ?? []).map(({ id, name }) => ({ id, name }))),
        readSources: (sourceIds) => {
          if (sourceIds.length > SOURCES_PER_READ) throw new RangeError('too many sources at once')
          const sources = sourceIds.flatMap((sourceId) => options.sources?.find(({ id }) => id === sourceId) ?? [])
          return Promise.resolve(sources)
        },
        searchSources: (words, limit) =>
          Promise.resolve(
            (options.sources ?? [])
              .filter(({ name, description }) =>
                words.some((word) => `${name} ${description}`.toLowerCase().includes(word)),
              )
              .slice(0, limit),
          ),
        listFiles: () => Promise.resolve((options.files ?? []).map(({ id, name, path }) => ({ id, name, path }))),
        readFile: (fileId) => Promise.resolve(options.files?.find(({ id }) => id === fileId)?.content),
        recordPrompt: (prompt) => {
          prompts.push({ position: steps.length, prompt })
          return Promise.resolve()
        },
        append: (added) => operate(() => append(added)),
        deliver: (request) => operate(() => deliver(request)),
        readApproval: () => Promise.resolve(undefined),
        parkForApproval: () => Promise.reject(new Error('The sources of this run need no approval')),
      })
    },
  }
}

/** Executes the run again and again, with a crash at each operation in turn, until an attempt ends without one. */
export async function executeWithCrashes(run: InMemoryRun, agent: Agent, when: 'before' | 'after'): Promise<void> {
  for (let operation = 1; ; operation += 1) {
    run.crashAt({ operation, when })
    try {
      await run.execute(agent)
      return
    } catch (error) {
      if (!(error instanceof Crash)) throw error
    }
  }
}
