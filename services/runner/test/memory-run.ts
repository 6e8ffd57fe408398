import { randomUUID } from 'node:crypto'
import { compile, type JournalStep, type NewJournalStep, STEP_DATA } from '@workflow-service/contract'
import type {
  Agent,
  AgentFile,
  AgentRun,
  AgentWebhookSource,
  DeliveryRequest,
  DeliveryResult,
  SessionTurn,
} from '../src/agent/agent.ts'

/** What the runner process dies of in these tests: nothing after it happens. */
export class Crash extends Error {}

export interface MemoryRunOptions {
  name?: string
  description?: string
  inputMessage?: string
  context?: string
  sources?: readonly AgentWebhookSource[]
  files?: readonly (AgentFile & { content: string })[]
  history?: readonly SessionTurn[]
  /** The endpoint behind every webhook source; 204 by default. */
  endpoint?: (request: DeliveryRequest) => Partial<DeliveryResult>
}

/** A run with its journal and its delivery log, as a runner and a dispatcher keep them, in memory. */
export interface MemoryRun {
  readonly steps: readonly JournalStep[]
  /** Every payload that left, in order. */
  readonly sent: readonly DeliveryRequest[]
  readonly stopping: AbortController
  readonly aborting: AbortController
  /** Takes the run up with what the journal holds by now. */
  take(agent: Agent): Promise<void>
  /** Lets the next attempt die right before or right after its nth write or delivery, counted from 1. */
  crashAt(place: { boundary: number; when: 'before' | 'after' } | null): void
  readonly boundaries: number
}

const checks = new Map(Object.entries(STEP_DATA).map(([kind, schema]) => [kind, compile(schema)]))

/** A webhook source of an organization. */
export function webhookSource(
  name: string,
  exampleRequestBody: Record<string, unknown>,
  description = '',
): AgentWebhookSource {
  return { id: randomUUID(), name, description, exampleRequestBody }
}

export function memoryRun(options: MemoryRunOptions = {}): MemoryRun {
  const steps: JournalStep[] = []
  const sent: DeliveryRequest[] = []
  const results = new Map<string, DeliveryResult>()
  const stopping = new AbortController()
  const aborting = new AbortController()
  let crash: { boundary: number; when: 'before' | 'after' } | null = null
  let boundaries = 0

  /** Like a database and a dispatcher: what they have done stays done, whether or not the caller hears of it. */
  function across<Result>(act: () => Result): Promise<Result> {
    boundaries += 1
    if (crash?.boundary === boundaries && crash.when === 'before') return Promise.reject(new Crash())
    const result = act()
    if (crash?.boundary === boundaries) return Promise.reject(new Crash())
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

  const run: AgentRun['run'] = {
    id: randomUUID(),
    organizationId: randomUUID(),
    sessionId: randomUUID(),
    workflow: { id: randomUUID(), name: options.name ?? 'Orders', description: options.description ?? '' },
    inputMessage: options.inputMessage ?? '',
    context: options.context ?? '',
    requestId: 'test-request',
  }
  const history = options.history ?? []

  return {
    steps,
    sent,
    stopping,
    aborting,
    get boundaries() {
      return boundaries
    },
    crashAt(place) {
      crash = place
    },
    take(agent) {
      boundaries = 0
      return agent({
        run,
        steps: [...steps],
        signal: stopping.signal,
        abort: aborting.signal,
        history: (limit) => Promise.resolve({ turns: history.slice(-limit), total: history.length }),
        listSources: () => Promise.resolve(options.sources ?? []),
        listFiles: () => Promise.resolve((options.files ?? []).map(({ id, name, path }) => ({ id, name, path }))),
        readFile: (fileId) => Promise.resolve(options.files?.find(({ id }) => id === fileId)?.content),
        append: (added) => across(() => append(added)),
        deliver: (request) => across(() => deliver(request)),
      })
    },
  }
}

/** Takes the run up again and again, dying at every boundary in turn, and ends with what the last attempt does. */
export async function takeWithCrashes(run: MemoryRun, agent: Agent, when: 'before' | 'after'): Promise<void> {
  for (let boundary = 1; ; boundary += 1) {
    run.crashAt({ boundary, when })
    try {
      await run.take(agent)
      return
    } catch (error) {
      if (!(error instanceof Crash)) throw error
    }
  }
}
