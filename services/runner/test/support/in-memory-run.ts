import { randomUUID } from 'node:crypto'
import type { JournalStep, LookupCallIn, LookupCallOut } from '@workflow-service/contract'
import type { SourceForAgent } from '@workflow-service/database'
import { NO_TRACING } from '@workflow-service/service-kit'
import {
  createInMemoryDispatcher,
  createInMemoryStore,
  type InMemoryContent,
  type SentPayload,
  toClaimedRun,
} from '../../evaluation/in-memory-services.ts'
import type { Agent, DeliveryResult } from '../../src/agent/agent.ts'
import { RunError, RunInterruptedError } from '../../src/run-errors.ts'
import type { ActiveLease } from '../../src/runs/active-lease.ts'
import { createAgentRun } from '../../src/runs/agent-run.ts'
import { openJournal } from '../../src/runs/journal.ts'

/** Simulates the death of the runner process: nothing happens after it. */
export class Crash extends Error {}

export interface InMemoryRunOptions extends InMemoryContent {
  sessionId?: string
  /** The name of the workflow. */
  name?: string
  description?: string
  /** What the workflow chooses; null: the default. */
  model?: string | null
  inputMessage?: string
  context?: string
  /** What the look-ups answer; the request's tool and arguments by default. */
  lookUp?: (request: LookupCallIn) => Partial<LookupCallOut>
  /** The endpoint behind every webhook source; 204 by default. */
  endpoint?: (request: SentPayload) => Partial<DeliveryResult>
}

/** A run whose journal and delivery log are in memory instead of behind a database and a dispatcher. */
export type InMemoryRun = ReturnType<typeof createInMemoryRun>

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

export function createInMemoryRun(options: InMemoryRunOptions = {}) {
  const { sessionId = randomUUID(), name = 'Orders', description = '', model = null } = options
  const { inputMessage = '', context = '', history = [] } = options
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
    sessionId,
    number: history.length + 1,
    workflow: { id: randomUUID(), name, description, model },
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

  const execute = async (agent: Agent): Promise<void> => {
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
  }

  return {
    get steps(): readonly JournalStep[] {
      return stepsOf(run.id)
    },
    /** The payloads that were sent, in order. */
    sent,
    /** The calls of look-ups, in order. */
    lookedUp,
    /** What the model was asked with, by the position of the next step. */
    prompts,
    /** Makes the agent end at its next step boundary. */
    interrupt: () => interrupting.abort(new RunInterruptedError()),
    /** Makes the agent abandon calls under way. */
    abort() {
      interrupting.abort(new RunInterruptedError())
      aborting.abort(new RunInterruptedError())
    },
    /** Executes the run, or resumes it from its journal. */
    execute,
    /**
     * Executes the run until it crashes right before or right after its nth write, delivery or look-up, counted from 1.
     * Resolves to whether it has: it may end before.
     */
    async crashAt(agent: Agent, operation: number, when: CrashPoint['when'] = 'after'): Promise<boolean> {
      crash = { operation, when }
      try {
        await execute(agent)
        return false
      } catch (error) {
        if (error instanceof Crash) return true
        throw error
      } finally {
        crash = null
      }
    },
  }
}

/** Executes the run again and again, with a crash at each operation in turn, until an attempt ends without one. */
export async function executeWithCrashes(run: InMemoryRun, agent: Agent, when: 'before' | 'after'): Promise<void> {
  for (let operation = 1; await run.crashAt(agent, operation, when);) operation += 1
}
