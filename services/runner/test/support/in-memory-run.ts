import { randomUUID } from 'node:crypto'
import type { JournalStep, LookupCallIn, LookupCallOut, RunPrompt } from '@workflow-service/contract'
import type {
  CostRequest,
  CostReservation,
  EarlierRun,
  Instructions,
  LookupForAgent,
  SourceForAgent,
} from '@workflow-service/database'
import { NO_TRACING } from '@workflow-service/service-kit'
import {
  createInMemoryDispatcher,
  createInMemoryStore,
  type InMemoryFile,
  type SentPayload,
  toClaimedRun,
} from '../../evaluation/in-memory-services.ts'
import type { Agent, DeliveryResult, OwnModelKey } from '../../src/agent/agent.ts'
import { RunError, RunInterruptedError } from '../../src/run-errors.ts'
import type { ActiveLease } from '../../src/runs/active-lease.ts'
import { createAgentRun } from '../../src/runs/agent-run.ts'
import { openJournal } from '../../src/runs/journal.ts'

/** Simulates the death of the runner process: nothing happens after it. */
export class Crash extends Error {}

export interface InMemoryRunOptions {
  description?: string
  /** What the workflow chooses; null: the default. */
  model?: string | null
  inputMessage?: string
  context?: string
  sources?: readonly SourceForAgent[]
  files?: readonly InMemoryFile[]
  lookups?: readonly LookupForAgent[]
  instructions?: readonly Instructions[]
  /** What the look-ups answer; the request's tool and arguments by default. */
  lookUp?: (request: LookupCallIn) => Partial<LookupCallOut>
  history?: readonly Omit<EarlierRun, 'number'>[]
  modelKeys?: readonly OwnModelKey[]
  reserveCost?: (request: CostRequest) => CostReservation
  /** The endpoint behind every webhook source; 204 by default. */
  endpoint?: (request: SentPayload) => Partial<DeliveryResult>
}

/** A run whose journal and delivery log are in memory instead of behind a database and a dispatcher. */
export interface InMemoryRun {
  readonly steps: readonly JournalStep[]
  /** The payloads that were sent, in order. */
  readonly sent: readonly SentPayload[]
  /** The calls of look-ups, in order. */
  readonly lookedUp: readonly LookupCallIn[]
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

/** A webhook source of an organization. */
export function webhookSource(
  name: string,
  exampleRequestBody: Record<string, unknown>,
  description = '',
): SourceForAgent {
  return { id: randomUUID(), name, description, exampleRequestBody }
}

export function createInMemoryRun(options: InMemoryRunOptions = {}): InMemoryRun {
  const { description = '', model = null, inputMessage = '', context = '', history = [] } = options
  const sent: SentPayload[] = []
  const [interrupting, aborting] = [new AbortController(), new AbortController()]
  const memory = createInMemoryStore(options)
  const { store, stepsOf, prompts } = memory
  const lookedUp: LookupCallIn[] = []
  const dispatcher = createInMemoryDispatcher(
    memory,
    (request) => {
      sent.push(request)
      return { outcome: 'accepted', status: 204, answer: null, reason: null, ...options.endpoint?.(request) }
    },
    (request) => {
      lookedUp.push(request)
      const text = JSON.stringify(request)
      const answer = { ok: true, status: 200, is_cut_off: false, duration_ms: 1, text, ...options.lookUp?.(request) }
      return { bytes: Buffer.byteLength(answer.text), ...answer }
    },
  )
  let crash: CrashPoint | null = null
  let operations = 0

  /** Like a database or a dispatcher: the effect remains even if the caller crashes before it gets the answer. */
  async function operate<Result>(operation: () => Promise<Result>): Promise<Result> {
    const number = ++operations
    if (crash?.operation === number && crash.when === 'before') throw new Crash()
    const result = await operation()
    if (crash?.operation === number) throw new Crash()
    return result
  }

  const run = toClaimedRun(options, {
    id: randomUUID(),
    organizationId: randomUUID(),
    sessionId: randomUUID(),
    number: history.length + 1,
    workflow: { id: randomUUID(), name: 'Orders', description, model },
    inputMessage,
    context,
    acceptedAt: '2026-01-31T08:59:58.123Z',
  })
  const lease: ActiveLease = {
    sessionId: run.sessionId,
    epoch: 1,
    signal: interrupting.signal,
    abort: aborting.signal,
    isLost: false,
    isEnding: false,
  }

  return {
    get steps() {
      return stepsOf(run.id)
    },
    sent,
    lookedUp,
    prompts,
    interrupt: () => interrupting.abort(new RunInterruptedError()),
    abort() {
      interrupting.abort(new RunInterruptedError())
      aborting.abort(new RunInterruptedError())
    },
    crashAt(point) {
      crash = point
    },
    async execute(agent) {
      operations = 0
      const stored = store.open(lease, run)
      const journal = openJournal({ stored })
      const steps = await journal.readSteps()
      const agentRun = createAgentRun(
        { dispatcher, tracing: NO_TRACING },
        { lease, run, stored, journal, steps, onDelivered: () => {}, onSucceeded: () => {} },
      )
      try {
        await agent({
          ...agentRun,
          lookUp: (request) => operate(() => agentRun.lookUp(request)),
          append: (added) => operate(() => agentRun.append(added)),
          deliver: (request) => operate(() => agentRun.deliver(request)),
        })
      } catch (error) {
        if (error instanceof RunError) await journal.flush()
        throw error
      }
      await journal.flush()
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
