import { escapeLiteral } from 'pg'
import {
  column,
  type Db,
  listsOf,
  NIL_UUID,
  type RowOfStatement,
  runStatement,
  sql,
  statement,
} from '../connection/index.ts'
import type { Lease } from '../deliveries/index.ts'
import { smallSources, type SourceForAgent } from '../sources/index.ts'
import { CLAIMED_RUN, type ClaimedRun, MAX_RUN_ATTEMPTS } from './claimed-run.ts'

/** A session that was just leased, with the first run to execute. */
export interface AcquiredSession {
  readonly lease: Lease
  readonly organizationId: string
  /** A run that this acquisition ended as failed, because it had no attempt left; null when there is none. */
  readonly exhaustedRunId: string | null
  /**
   * Null after an exhausted run, or when the start is not visible to the statement's snapshot, or was deleted:
   * `claimNextRun` decides.
   */
  readonly run: ClaimedRun | null
  /**
   * The organization's webhook sources, in the order of their names; null when they are many or large
   * (`listSmallSources`).
   */
  readonly sources: readonly SourceForAgent[] | null
}

/** Which runner acquires sessions, and how many it may acquire. */
export interface AcquireOptions {
  readonly owner: string
  readonly leaseMs: number
  /** Free slots: the most sessions that one call acquires. */
  readonly slots: number
  /** Maximum sessions of one organization that this runner may lease at once. */
  readonly maxPerOrganization: number
  /** The sessions that this runner has leased, by organization. */
  readonly leasedByOrganization: ReadonlyMap<string, number>
}

/** The acquired sessions, and whether slots or shares left more behind. */
export interface AcquiredSessions {
  readonly sessions: readonly AcquiredSession[]
  readonly isMore: boolean
}

/** The error of a run that is not attempted again because its runner died in each attempt (contract README, "Runs"). */
export const TOO_MANY_ATTEMPTS = `too_many_attempts: The run was started ${MAX_RUN_ATTEMPTS} times, and its runner died each time`

/** The columns and inserts of both acquisitions. */
const ACQUIRED = {
  isMore: column.boolean,
  sessions: column.json<readonly Omit<AcquiredSession, 'sources'>[]>(),
  sourcesByOrganization: column.json<Record<string, readonly SourceForAgent[]>>(),
}
const INSERTS = {
  LEASE_CANDIDATES: sql('runs/lease-candidates', {
    MAX_RUN_ATTEMPTS,
    TOO_MANY_ATTEMPTS: escapeLiteral(TOO_MANY_ATTEMPTS),
  }),
  ACQUIRED_COLUMNS: sql('runs/acquired-columns', {
    CLAIMED_RUN,
    SMALL_SOURCES: smallSources('(SELECT DISTINCT organization_id AS id FROM acquired)'),
  }),
}

const ACQUIRE_SESSIONS = statement('runs/acquire-sessions', ACQUIRED, INSERTS)

/**
 * Leases those of the sessions that are free. A run without an attempt left ends here, before anything of it is read:
 * it may be what kills its runners. The other sessions have a live lease or no work, belong to a suspended
 * organization, or do not exist.
 */
export async function acquireSessions(
  db: Db,
  options: AcquireOptions,
  sessionIds: readonly string[],
): Promise<AcquiredSessions> {
  const { rows } = await runStatement(db, ACQUIRE_SESSIONS, [...toValues(options), sessionIds])
  return toAcquiredSessions(rows[0]!)
}

/** How many organizations one sweep visits: it costs an index probe for each. */
const ORGANIZATIONS_PER_SWEEP = 500

const ACQUIRE_WAITING_SESSIONS = statement(
  'runs/acquire-waiting-sessions',
  { lastOrganizationId: column.uuid.orNull, ...ACQUIRED },
  INSERTS,
)

/**
 * Leases free sessions of any organization: the sweep, which finds work whose queue message was lost. The slots go to
 * organizations in turn, and within each to the session that has waited longest. The leases of `endedRunners` count as
 * expired. `next` is where the next sweep continues.
 */
export async function acquireWaitingSessions(
  db: Db,
  options: AcquireOptions,
  from: string = NIL_UUID,
  endedRunners: readonly string[] = [],
): Promise<AcquiredSessions & { next: string }> {
  const values = [...toValues(options), from, ORGANIZATIONS_PER_SWEEP, endedRunners]
  const { rows } = await runStatement(db, ACQUIRE_WAITING_SESSIONS, values)
  return { ...toAcquiredSessions(rows[0]!), next: rows[0]!.lastOrganizationId ?? NIL_UUID }
}

/** The parameters $1 to $6 of both statements. */
function toValues({ owner, leaseMs, slots, maxPerOrganization, leasedByOrganization }: AcquireOptions): unknown[] {
  return [
    owner,
    leaseMs,
    slots,
    maxPerOrganization,
    [...leasedByOrganization.keys()],
    [...leasedByOrganization.values()],
  ]
}

function toAcquiredSessions(row: RowOfStatement<typeof ACQUIRE_SESSIONS>): AcquiredSessions {
  const sessions = row.sessions.map((session) => ({
    ...session,
    sources: row.sourcesByOrganization[session.organizationId] ?? null,
  }))
  return { sessions, isMore: row.isMore }
}

const RENEW_LEASES = statement('runs/renew-leases', {
  sessionId: column.uuid,
  epoch: column.float8,
  /** False when another transaction has locked the session's row, so that the lease has to be renewed again soon. */
  isRenewed: column.boolean,
})

/**
 * Renews a runner's leases in one statement, without waiting. Resolves to those that are still its own; the others are
 * lost.
 */
export async function renewLeases(db: Db, owner: string, leaseMs: number, leases: readonly Lease[]) {
  const { rows } = await runStatement(db, RENEW_LEASES, [owner, leaseMs, ...listsOf(leases, 'sessionId', 'epoch')])
  return rows
}

const RELEASE_SESSIONS = statement('runs/release-sessions', {})

export interface ReleasedLease extends Lease {
  /** Parks the session: it is not acquired before this time has passed. Without it, it can be acquired at once. */
  readonly parkedMs?: number
}

/**
 * Releases sessions whose run was interrupted between two steps: the run is queued again, and the interruption does not
 * count as an attempt. Lost leases are skipped.
 */
export async function releaseSessions(db: Db, owner: string, leases: readonly ReleasedLease[]): Promise<void> {
  await runStatement(db, RELEASE_SESSIONS, [owner, ...listsOf(leases, 'sessionId', 'epoch', 'parkedMs')])
}

const MEASURE_BACKLOG = statement('runs/measure-backlog', {
  /** Sessions with work and no live lease, without the parked ones. */
  sessions: column.integer,
  /** How long the longest waiting of them has waited; null when there is none. */
  oldestWaitMs: column.float8.orNull,
})

/** Counts the sessions that wait for a runner. Parked ones and those of suspended organizations wait on purpose. */
export async function measureBacklog(db: Db) {
  const { rows } = await runStatement(db, MEASURE_BACKLOG, [])
  return rows[0]!
}
