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
import { toDeliveryStep } from '@workflow-service/contract/delivery-step'
import type { DeliveryResult, OwnModelKey } from '../src/agent/agent.ts'
import type { DispatcherClient } from '../src/runs/dispatcher-client.ts'
import type { RunStore, StoredRun } from '../src/runs/run-store.ts'

export type InMemoryFile = WorkflowFile & { readonly content: string }

/** What the tables of an organization hold for its runs. */
export interface InMemoryContent {
  readonly sources?: readonly SourceForAgent[]
  readonly files?: readonly InMemoryFile[]
  readonly lookups?: readonly LookupForAgent[]
  /** The versions of the organization's instructions, from 1. */
  readonly instructions?: readonly Instructions[]
  readonly modelKeys?: readonly OwnModelKey[]
  /** Whether a request to a model may begin; it may by default. */
  readonly reserveCost?: (request: CostRequest) => CostReservation
  /** The finished runs of the session, oldest first. */
  readonly history?: readonly Omit<EarlierRun, 'number'>[]
}

const stepChecks = new Map(Object.entries(STEP_DATA).map(([kind, schema]) => [kind, compile(schema)]))

/** Creates a store of runs that reads the content at each call, and keeps the journals in memory. */
export function createInMemoryStore(content: InMemoryContent) {
  const journals = new Map<string, JournalStep[]>()
  const prompts: { position: number; prompt: RunPrompt }[] = []
  const stepsOf = (runId: string): JournalStep[] => journals.get(runId) ?? []
  const listSources = (): readonly SourceForAgent[] => content.sources ?? []
  /** Like the database: a step that is there already is kept. */
  const write = (runId: string, position: number, added: readonly NewJournalStep[]): void => {
    const steps = stepsOf(runId)
    if (position > steps.length) throw new Error(`The journal has ${steps.length} steps, not ${position}`)
    const fresh = added.map((step, index) => toStored(step, position + index)).slice(steps.length - position)
    journals.set(runId, [...steps, ...fresh])
  }
  const store: RunStore = {
    open: (_lease, { id: runId, organizationId, number, workflow }): StoredRun => ({
      readSteps: async () => [...stepsOf(runId)],
      appendSteps: async (position, added) => write(runId, position, added),
      reserveCost: async (request) =>
        content.reserveCost?.({ organizationId, workflowId: workflow.id, runId, ...request }) ?? { kind: 'reserved' },
      settleCost: async () => {},
      recordPrompt: async (position, prompt) => void prompts.push({ position, prompt }),
      countAttempt: async () => 1,
      history: async (limit) => ({
        runs: (content.history ?? [])
          .map((run, index) => ({ ...run, number: index + 1 }))
          .slice(0, number - 1)
          .slice(-limit),
        total: number - 1,
      }),
      readSummary: async () =>
        (content.history ?? [])
          .slice(0, number - 1)
          .flatMap(({ steps }) => steps.flatMap((step) => (step.kind === 'session_summary' ? [step.data] : [])))
          .findLast(({ text }) => text !== ''),
      listSmallSources: async () => listSources(),
      listSourceNames: async () => listSources(),
      readSources: async (ids) => ids.flatMap((id) => listSources().find((source) => source.id === id) ?? []),
      searchSources: async (words, limit) =>
        listSources()
          .filter(({ name, description }) =>
            words.some((word) => `${name} ${description}`.toLowerCase().includes(word)),
          )
          .slice(0, limit),
      listLookups: async () => content.lookups ?? [],
      readInstructions: async (version = content.instructions?.length ?? 0) =>
        content.instructions?.find((each) => each.number === version && each.text !== ''),
      readModelKeys: async () => content.modelKeys ?? [],
      listFiles: async () => content.files ?? [],
      readFile: async (fileId) => content.files?.find(({ id }) => id === fileId)?.content,
      readApproval: async () => undefined,
      parkForSource: () => Promise.reject(new Error('No source in memory is paused')),
      parkForApproval: () => Promise.reject(new Error('No source in memory needs an approval')),
    }),
  }
  return { store, stepsOf, write, prompts }
}

/** The step as PostgreSQL returns it. @throws TypeError for a step that does not follow its schema. */
function toStored(step: NewJournalStep, position: number): JournalStep {
  const stored = JSON.parse(JSON.stringify(step)) as NewJournalStep
  const check = stepChecks.get(stored.kind)
  if (!check?.(stored.data)) throw new TypeError(`Not a ${stored.kind} step: ${JSON.stringify(check?.errors)}`)
  return { ...stored, position, createdAt: new Date() }
}

/** A payload as the dispatcher sends it. */
export interface SentPayload {
  readonly deliveryId: string
  readonly sourceId: string
  readonly payload: Record<string, unknown>
}

/**
 * Creates a dispatcher that sends each delivery once, by `send`, and only if it is in the run's journal, which it
 * writes.
 */
export function createInMemoryDispatcher(
  { stepsOf, write }: Pick<ReturnType<typeof createInMemoryStore>, 'stepsOf' | 'write'>,
  send: (request: SentPayload, runId: string) => DeliveryResult,
  lookUp: (request: LookupCallIn) => LookupCallOut = () => {
    throw new Error('No look-up answers here')
  },
): DispatcherClient {
  const results = new Map<string, DeliveryResult>()
  return {
    async deliver(_lease, { id: deliveryId, body }) {
      const { source_id: sourceId = '', payload = {}, journal, lease } = body
      const runId = String(body.run_id)
      const known = results.get(deliveryId)
      if (known) return known
      const planned = (journal?.steps ?? []).map(
        ({ kind, data }) => ({ kind, data: JSON.parse(data) as unknown }) as NewJournalStep,
      )
      write(runId, journal?.position ?? 0, planned)
      const isPlanned = stepsOf(runId).some(
        (step) => step.kind === 'tool_call' && step.data.delivery?.id === deliveryId,
      )
      if (!isPlanned) throw new TypeError('The delivery is not in the journal')
      const result = send({ deliveryId, sourceId, payload }, runId)
      results.set(deliveryId, result)
      if (!journal) return result
      const { position, call_id, tool, source_name, last_of_run: last } = journal
      const call = { call_id, tool, delivery: { id: deliveryId, source_id: sourceId, source_name } }
      write(runId, position + planned.length, [toDeliveryStep(lease?.session_id ?? '', call, result)])
      return { ...result, journal: last !== null && result.outcome === 'accepted' ? 'succeeded' : 'written' }
    },
    lookUp: async (_lease, { body }) => lookUp(body),
    close: async () => {},
  }
}

/** The run of a start, as a runner claims it first. */
export function toClaimedRun(
  { files = [] }: InMemoryContent,
  start: Pick<
    ClaimedRun,
    'id' | 'organizationId' | 'sessionId' | 'number' | 'inputMessage' | 'context' | 'acceptedAt'
  > & {
    readonly workflow: Pick<ClaimedRun['workflow'], 'id' | 'name' | 'description' | 'model'>
  },
): ClaimedRun {
  return {
    ...start,
    workflow: {
      ...start.workflow,
      rulesFileId: files.find(isRulesFile)?.id ?? null,
      rulesLikeFiles: files.map(({ name, path }) => ({ name, path })),
    },
    requestId: 'in-memory',
    trace: null,
    attempts: 1,
    isFirst: true,
    waitedMs: 0,
  }
}
