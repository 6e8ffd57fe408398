import { RULES_FILE_NAME, type TraceContext } from '@workflow-service/contract'
import { sql } from '../connection/index.ts'

/** How many times a run is attempted before it fails (contract README, "Runs"). */
export const MAX_RUN_ATTEMPTS = 5

/** A run that the owner of the session's lease executes now. */
export interface ClaimedRun {
  readonly id: string
  readonly organizationId: string
  readonly sessionId: string
  /** Its position in the session, from 1. */
  readonly number: number
  readonly workflow: {
    readonly id: string
    readonly name: string
    readonly description: string
    /** The name of the model that it chooses, or `builtin`; absent or null: the default of the runner. */
    readonly model?: string | null
    /** The file with the rules of the built-in agent, if the workflow has one. */
    readonly rulesFileId: string | null
    /** Files that may look like rules; absent without any. At most 20. */
    readonly rulesLikeFiles?: readonly { readonly name: string; readonly path: readonly string[] }[] | null
  }
  readonly inputMessage: string
  readonly context: string
  readonly requestId: string
  /** The trace that the start belongs to; null when it was accepted without one. */
  readonly trace: TraceContext | null
  /** When the start was accepted, in ISO 8601. */
  readonly acceptedAt: string
  /** When this attempt began, by the database's clock, in ISO 8601. */
  readonly claimedAt: string
  /** Attempts including this one. */
  readonly attempts: number
  /** Whether this is the first time that a runner claims it, so that its journal is empty. */
  readonly isFirst: boolean
  /** The time from the start to its first claim, by the database's clock; null when it was claimed before. */
  readonly waitedMs: number | null
}

/** SQL for a ClaimedRun, from `starts` as `claimed` and `workflows`. */
export const CLAIMED_RUN = sql('runs/claimed-run', { RULES_FILE_NAME })

/**
 * One attempt at a trial or a case: its runner changes nothing once its lease has expired, or another runner has
 * claimed it.
 */
export type ClaimedAttempt = Pick<ClaimedRun, 'id' | 'attempts'>
/** For the attempt's `id`, `$1`, and `attempts`, `$2`. */
export const IS_LEASED = 'id = $1 AND attempts = $2 AND finished_at IS NULL AND lease_until > clock_timestamp()'
