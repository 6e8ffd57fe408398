import type {
  DeliveryOutcome,
  JournalStep,
  LookupCallOut,
  LookupCallStep,
  NewJournalStep,
  RunJournalState,
  RunPrompt,
  SessionSummaryStep,
  ToolCallStep,
} from '@workflow-service/contract'
import type {
  ApprovalRequest,
  ApprovalState,
  ClaimedRun,
  CostRequest,
  CostReservation,
  EarlierRun,
  FoundSource,
  Instructions,
  LookupForAgent,
  SourceForAgent,
  SourceName,
  WorkflowFile,
} from '@workflow-service/database'

/**
 * Executes one run. Resolves when the run succeeded.
 * @throws RunError: the run failed, and no further attempt follows.
 * @throws LeaseLostError or RunInterruptedError: the run is unfinished and continues from its journal.
 * @throws RunParkedError: the run is unfinished, and continues from its journal after a delay that the error gives.
 * @throws any other error: the attempt failed, and another one may follow.
 */
export type Agent = (run: AgentRun) => Promise<void>

/** What an agent reads and reserves in the database. */
export interface RunRecords {
  /** Whether the fallback of the model may not continue the run: an evaluation is of one model. */
  readonly isOfOneModel?: boolean
  /**
   * The newest `limit` finished runs of the session before this one, oldest first, and the total number of such runs.
   */
  history(limit: number): Promise<{ readonly runs: readonly EarlierRun[]; readonly total: number }>
  /** The newest summary in the journals of those runs. */
  readSummary(): Promise<SessionSummaryStep | undefined>
  /** Those of the sources that were not deleted, in the order of `sourceIds`: see `readInParts`. */
  readSources(sourceIds: readonly string[]): Promise<readonly SourceForAgent[]>
  /**
   * The sources whose names or descriptions have one of the words, in lower case: first those with the most of them. At
   * most `limit`, with the beginning of their descriptions.
   */
  searchSources(words: readonly string[], limit: number): Promise<readonly FoundSource[]>
  /** All look-ups of the organization, sorted by name. */
  listLookups(): Promise<readonly LookupForAgent[]>
  /**
   * The organization's instructions: the version of this number, or the newest one. Undefined if there are none, or no
   * longer that version.
   */
  readInstructions(number?: number): Promise<Instructions | undefined>
  /** The organization's own keys, decrypted. */
  readModelKeys(): Promise<readonly OwnModelKey[]>
  /** The workflow's files, sorted by folder, then by name. */
  listFiles(): Promise<readonly WorkflowFile[]>
  /** A file's content; undefined when the workflow has no such file. */
  readFile(fileId: string): Promise<string | undefined>
  /** The approval of a delivery as it is now; undefined if none was requested. */
  readApproval(deliveryId: string): Promise<ApprovalState | undefined>
  /** Reserves what a request to a model may cost. Replaces a reservation of the run whose runner has ended. */
  reserveCost(request: Omit<CostRequest, 'organizationId' | 'workflowId' | 'runId'>): Promise<CostReservation>
  /** Ends the reservation of an answer, which cost this; does nothing if it has ended. */
  settleCost(turn: number, cost: number): Promise<void>
}

/** What an agent knows of the run without reading it. */
export type RunFacts = Pick<
  ClaimedRun,
  | 'id'
  | 'organizationId'
  | 'sessionId'
  | 'workflow'
  | 'inputMessage'
  | 'context'
  | 'requestId'
  | 'acceptedAt'
  | 'claimedAt'
>

/**
 * The agent's only access to the run, so that it depends neither on the database nor on leases nor on the dispatcher's
 * API. Every call can throw LeaseLostError or RunInterruptedError, and the agent must let these pass.
 */
export interface AgentRun extends RunFacts, RunRecords {
  /** The agent's steps in the journal when this attempt began, in order; empty unless the run is resumed. */
  readonly steps: readonly JournalStep[]
  /**
   * Aborts when the lease is lost or the runner begins to stop: the agent must end at the next step boundary, with the
   * signal's reason as its error.
   */
  readonly interrupted: AbortSignal
  /**
   * Aborts, after `interrupted`, when the lease is lost or the grace period is over: the agent must abandon calls under
   * way.
   */
  readonly abandoned: AbortSignal
  /** All webhook sources of the organization, sorted by name, as they were when this runner began the run or later. */
  listSources(): Promise<readonly SourceName[]>
  /** Calls a tool of a look-up, which only reads: it is safe to repeat. Waits while the dispatcher is unavailable. */
  lookUp(lookup: LookupCallStep, args: Record<string, unknown>): Promise<LookupCallOut>
  /** Records what a model is asked with at this point of the journal, for people. */
  recordPrompt(prompt: RunPrompt): Promise<void>
  /**
   * Adds steps that need not be durable yet: they are written with those of the next `append`, or with the claim of the
   * next delivery. A runner that dies before loses them.
   */
  plan(steps: readonly NewJournalStep[]): void
  /** Appends the steps to the journal, all or none, and resolves when they are durable. */
  append(steps: readonly NewJournalStep[]): Promise<void>
  /**
   * Sends the payload of a tool call that was planned or appended, at most once per delivery id: a repeated call
   * resolves to the recorded result. Waits while the dispatcher is unavailable. Resolves for every outcome, also when
   * the webhook source was deleted.
   * @param isLast Whether nothing is left to do once the payload is accepted: the run then succeeds with the outcome.
   */
  deliver(call: DeliveryCall, isLast: boolean): Promise<PayloadResult | ApprovalRequired>
  /**
   * Requests the approval of the first payload, and of those of the others that need one. Resolves only if the first
   * one was decided meanwhile.
   * @throws RunParkedError once the requests are in the journal: the run continues after a decision.
   */
  parkForApproval(payloads: ApprovalRequest['payloads']): Promise<void>
}

/** Nothing was sent: the payload needs the approval of a person. */
export interface ApprovalRequired {
  readonly outcome: 'approval_required'
}

/** A key of an organization's own for a model. */
export interface OwnModelKey {
  /** New for each key. */
  readonly id: string
  readonly model: string
  /** Null: this runner cannot decrypt it. */
  readonly key: string | null
}

/** A tool call that sends a payload. */
export interface DeliveryCall extends ToolCallStep {
  readonly delivery: NonNullable<ToolCallStep['delivery']>
}

/** What became of a payload. `unknown` means that the dispatcher died meanwhile: the payload may have arrived. */
export interface PayloadResult {
  readonly outcome: Exclude<DeliveryOutcome, 'in_flight'>
  readonly status: number | null
  /** The text of the endpoint's answer (contract README, "Deliveries"), or null. */
  readonly answer: string | null
  /** Why the payload was not accepted; for `invalid`, which fields do not match the example. */
  readonly reason: string | null
  /** The time of the request to the endpoint in milliseconds; absent or null if none was made. */
  readonly durationMs?: number | null
  /**
   * What the dispatcher wrote with the outcome. `written`: the planned steps and the result are in the journal;
   * `succeeded`: the run has ended, too.
   */
  readonly journal?: RunJournalState
}
