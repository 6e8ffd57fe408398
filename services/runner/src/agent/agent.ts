import type { DeliveryOutcome, JournalStep, NewJournalStep } from '@workflow-service/contract'

/**
 * What the agent needs of the run around it, and nothing else: the agent knows neither the database, nor leases, nor the
 * dispatcher's API. Every method but the reads throws LeaseLostError once the lease is gone, and the agent lets it pass.
 */
export interface AgentRun {
  readonly run: {
    readonly id: string
    readonly organizationId: string
    readonly sessionId: string
    readonly workflow: { readonly id: string; readonly name: string; readonly description: string }
    /** The trigger's text as it was when the start was accepted; may be empty. */
    readonly inputMessage: string
    /** The text of the start request; empty for a scheduled run. */
    readonly context: string
    readonly requestId: string
  }
  /** What the journal held when the run was taken up, in order; empty unless a runner died in this run before. */
  readonly steps: readonly JournalStep[]
  /** Aborts when the lease is lost or the runner shuts down: the agent ends at the next step boundary. */
  readonly signal: AbortSignal
  /** Aborts when the lease is lost or the time for shutting down is over: what is under way is given up. */
  readonly abort: AbortSignal
  /** The newest `limit` finished runs of this session before this one, oldest first, and how many there are in all. */
  history(limit: number): Promise<SessionHistory>
  /** Every webhook source of the organization that is not deleted, sorted by name, as of the attempt's beginning or later. */
  listSources(): Promise<readonly AgentWebhookSource[]>
  /** The workflow's files, sorted by folder, then by name. */
  listFiles(): Promise<readonly AgentFile[]>
  /** A file's content; undefined when the workflow has no such file. */
  readFile(fileId: string): Promise<string | undefined>
  /** Adds the steps to the journal, in one write that is durable when it resolves and fenced by the lease's epoch. */
  append(steps: readonly NewJournalStep[]): Promise<void>
  /**
   * Sends the payload, at most once for a delivery id whatever dies: asked again with the same id it resolves with what
   * was recorded. It waits for a dispatcher that is away and resolves for every outcome, a deleted source included;
   * besides LeaseLostError it throws RunInterruptedError when `abort` ends the wait.
   */
  deliver(request: DeliveryRequest): Promise<DeliveryResult>
}

/** A payload for a webhook source. `deliveryId` is in the journal before this leaves the agent. */
export interface DeliveryRequest {
  readonly deliveryId: string
  readonly sourceId: string
  readonly payload: Record<string, unknown>
}

/** What came of a delivery. `unknown`: the dispatcher died meanwhile, so it may or may not have arrived. */
export interface DeliveryResult {
  readonly outcome: Exclude<DeliveryOutcome, 'in_flight'>
  readonly status: number | null
  /** The contract's answer text (4.5, rule 6), or null. */
  readonly answer: string | null
  /** Why it was not accepted, in words; for `invalid` the fields that do not follow the example. */
  readonly reason: string | null
}

/** A configured destination, as the agent may know it: neither the URL nor the secret. */
export interface AgentWebhookSource {
  readonly id: string
  readonly name: string
  readonly description: string
  readonly exampleRequestBody: Record<string, unknown>
}

export interface AgentFile {
  readonly id: string
  readonly name: string
  /** The folders from the top down; empty means the workflow's root. */
  readonly path: readonly string[]
}

export interface SessionHistory {
  readonly turns: readonly EarlierRun[]
  readonly total: number
}

/** An earlier run of the session. */
export interface EarlierRun {
  readonly runId: string
  readonly workflowName: string
  readonly inputMessage: string
  readonly context: string
  readonly status: 'succeeded' | 'failed'
  readonly error: string | null
  readonly steps: readonly JournalStep[]
}

/**
 * Carries out one run. Resolves: the run succeeded. Throws RunError: it failed, for good. Throws LeaseLostError or
 * RunInterruptedError: it is unfinished and continues from its journal. Throws anything else: this attempt failed.
 */
export type Agent = (run: AgentRun) => Promise<void>
