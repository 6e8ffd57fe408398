import { randomUUID } from 'node:crypto'
import {
  compile,
  isRulesFile,
  type JournalStep,
  type LookupCallIn,
  type LookupCallOut,
  type NewJournalStep,
  type RunPrompt,
  STEP_DATA,
} from '@workflow-service/contract'
import { toDeliveryStep } from '@workflow-service/contract/delivery-step'
import type {
  ClaimedRun,
  CostRequest,
  CostReservation,
  EarlierRun,
  Instructions,
  LookupForAgent,
  SourceForAgent,
  WorkflowFile,
} from '@workflow-service/database'
import { NO_TRACING } from '@workflow-service/service-kit'
import { listData } from '../../src/agent/agent-steps.ts'
import type { Agent, OwnModelKey, PayloadResult } from '../../src/agent/agent.ts'
import { RunError, RunInterruptedError } from '../../src/run-errors.ts'
import type { ActiveLease } from '../../src/runs/active-lease.ts'
import { type Attempt, createAgentRun } from '../../src/runs/agent-run.ts'
import { openJournal } from '../../src/runs/journal.ts'
import type { StoredRun } from '../../src/runs/run-store.ts'

/** Simulates the death of the runner process: nothing happens after it. */
export class Crash extends Error {}

/** A payload as the dispatcher sends it. */
interface SentPayload {
  readonly deliveryId: string
  readonly sourceId: string
  readonly payload: Record<string, unknown>
}

export interface InMemoryRunOptions {
  sessionId?: string
  /** The name of the workflow. */
  name?: string
  description?: string
  /** What the workflow chooses; null: the default. */
  model?: string | null
  inputMessage?: string
  context?: string
  sources?: readonly SourceForAgent[]
  files?: readonly (WorkflowFile & { readonly content: string })[]
  lookups?: readonly LookupForAgent[]
  /** The versions of the organization's instructions, from 1. */
  instructions?: readonly Instructions[]
  modelKeys?: readonly OwnModelKey[]
  /** The finished runs of the session, oldest first. */
  history?: readonly Omit<EarlierRun, 'number'>[]
  /** Whether a request to a model may begin; it may by default. */
  reserveCost?: (request: CostRequest) => CostReservation
  /** What the look-ups answer; the request's tool and arguments by default. */
  lookUp?: (request: LookupCallIn) => Partial<LookupCallOut>
  /** The endpoint behind every webhook source; 204 by default. */
  endpoint?: (request: SentPayload) => Partial<PayloadResult>
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

const stepChecks = new Map(Object.entries(STEP_DATA).map(([kind, schema]) => [kind, compile(schema)]))

/** The step as PostgreSQL returns it. @throws TypeError for a step that does not follow its schema. */
function toStored(step: NewJournalStep, position: number): JournalStep {
  const stored = JSON.parse(JSON.stringify(step)) as NewJournalStep
  const check = stepChecks.get(stored.kind)
  if (!check?.(stored.data)) throw new TypeError(`Not a ${stored.kind} step: ${JSON.stringify(check?.errors)}`)
  return { ...stored, position, createdAt: new Date() }
}

/** Creates a run. The options are read when they are asked for, so a test may change them meanwhile. */
export function createInMemoryRun(options: InMemoryRunOptions = {}) {
  const { sessionId = randomUUID(), name = 'Orders', description = '', model = null } = options
  const { inputMessage = '', context = '', history = [] } = options
  const files = () => options.files ?? []
  const sources = () => options.sources ?? []
  const run: ClaimedRun = {
    id: randomUUID(),
    organizationId: randomUUID(),
    sessionId,
    number: history.length + 1,
    workflow: {
      id: randomUUID(),
      name,
      description,
      model,
      rulesFileId: files().find(isRulesFile)?.id ?? null,
      rulesLikeFiles: files().map((file) => ({ name: file.name, path: file.path })),
    },
    inputMessage,
    context,
    requestId: 'in-memory',
    trace: null,
    attempts: 1,
    isFirst: true,
    waitedMs: 0,
    acceptedAt: '2026-01-31T08:59:58.123Z',
    claimedAt: '2026-01-31T08:59:59.123Z',
  }
  const [interrupting, aborting] = [new AbortController(), new AbortController()]
  const lease: ActiveLease = {
    sessionId,
    epoch: 1,
    interrupted: interrupting.signal,
    abandoned: aborting.signal,
    isLost: false,
    isEnding: false,
  }

  let steps: readonly JournalStep[] = []
  /** Like the database: a step that is there already is kept. */
  const write = (position: number, added: readonly NewJournalStep[]): void => {
    if (position > steps.length) throw new Error(`The journal has ${steps.length} steps, not ${position}`)
    const fresh = added.map((step, index) => toStored(step, position + index)).slice(steps.length - position)
    steps = [...steps, ...fresh]
  }
  const prompts: { position: number; prompt: RunPrompt }[] = []
  const earlierRuns = history.map((earlier, index) => ({ ...earlier, number: index + 1 }))
  const stored: StoredRun = {
    readSteps: async () => steps,
    appendSteps: async (position, added) => write(position, added),
    reserveCost: async (request) => {
      const { id: runId, organizationId, workflow } = run
      const all = { organizationId, workflowId: workflow.id, runId, ...request }
      return options.reserveCost?.(all) ?? { kind: 'reserved' }
    },
    settleCost: async () => {},
    recordPrompt: async (position, prompt) => void prompts.push({ position, prompt }),
    countAttempt: async () => 1,
    history: async (limit) => ({ runs: earlierRuns.slice(-limit), total: earlierRuns.length }),
    readSummary: async () =>
      earlierRuns.flatMap((earlier) => listData(earlier.steps, 'session_summary')).findLast(({ text }) => text !== ''),
    listSmallSources: async () => sources(),
    listSourceNames: async () => sources(),
    readSources: async (ids) => ids.flatMap((id) => sources().find((source) => source.id === id) ?? []),
    searchSources: async (words, limit) =>
      sources()
        .filter((source) => words.some((word) => `${source.name} ${source.description}`.toLowerCase().includes(word)))
        .slice(0, limit),
    listLookups: async () => options.lookups ?? [],
    readInstructions: async (version = options.instructions?.length ?? 0) =>
      options.instructions?.find((each) => each.number === version && each.text !== ''),
    readModelKeys: async () => options.modelKeys ?? [],
    listFiles: async () => files(),
    readFile: async (fileId) => files().find(({ id }) => id === fileId)?.content,
    readApproval: async () => undefined,
    parkForSource: () => Promise.reject(new Error('No source in memory is paused')),
    parkForApproval: () => Promise.reject(new Error('No source in memory needs an approval')),
  }

  const sent: SentPayload[] = []
  const lookedUp: LookupCallIn[] = []
  const results = new Map<string, PayloadResult>()
  /** Sends each delivery once, and only if it is in the run's journal, which it writes. */
  const dispatcher: Attempt['dispatcher'] = {
    async deliver(_lease, { params: { delivery_id: deliveryId }, body }) {
      const { source_id: sourceId = '', payload = {}, journal } = body
      const known = results.get(deliveryId)
      if (known) return known
      const planned = (journal?.steps ?? []).map(
        ({ kind, data }) => ({ kind, data: JSON.parse(data) as unknown }) as NewJournalStep,
      )
      write(journal?.position ?? 0, planned)
      const isPlanned = steps.some((step) => step.kind === 'tool_call' && step.data.delivery?.id === deliveryId)
      if (!isPlanned) throw new TypeError('The delivery is not in the journal')
      const request = { deliveryId, sourceId, payload }
      sent.push(request)
      const accepted = { outcome: 'accepted', status: 204, answer: null, reason: null } as const
      const result: PayloadResult = { ...accepted, ...options.endpoint?.(request) }
      results.set(deliveryId, result)
      if (!journal) return result
      const { position, call_id, tool, source_name, last_of_run: last } = journal
      const call = { call_id, tool, delivery: { id: deliveryId, source_id: sourceId, source_name } }
      write(position + planned.length, [toDeliveryStep(sessionId, call, result)])
      return { ...result, journal: last !== null && result.outcome === 'accepted' ? 'succeeded' : 'written' }
    },
    async lookUp(_lease, { body }) {
      lookedUp.push(body)
      const text = JSON.stringify(body)
      const answer = { ok: true, status: 200, is_cut_off: false, duration_ms: 1, text, ...options.lookUp?.(body) }
      return { bytes: Buffer.byteLength(answer.text), ...answer }
    },
  }

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

  const execute = async (agent: Agent): Promise<void> => {
    operations = 0
    const journal = openJournal(stored)
    const known = await journal.readSteps()
    const agentRun = createAgentRun({ dispatcher, tracing: NO_TRACING, lease, run, stored, journal, steps: known })
    try {
      await agent({
        ...agentRun,
        lookUp: (...request) => operate(() => agentRun.lookUp(...request)),
        append: (added) => operate(() => agentRun.append(added)),
        deliver: (...request) => operate(() => agentRun.deliver(...request)),
      })
    } catch (error) {
      if (error instanceof RunError) await journal.flush()
      throw error
    }
    await journal.flush()
  }

  return {
    lease,
    run,
    stored,
    get steps() {
      return steps
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
    /** The data of the journal's steps of this kind. */
    dataOf: <Kind extends JournalStep['kind']>(kind: Kind) => listData(steps, kind),
    /** Executes the run, or resumes it from its journal. */
    execute,
    /** Executes the run, or resumes it. Resolves to the error of the run; undefined if it has succeeded. */
    errorOf: (agent: Agent): Promise<RunError | undefined> =>
      execute(agent).then(
        () => undefined,
        (error: RunError) => error,
      ),
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
