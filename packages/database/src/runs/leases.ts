import { type Db, type NamedStatement, NIL_UUID, runStatement } from '../connection/index.ts'
import { CLAIMED_RUN, type ClaimedRun, MAX_RUN_ATTEMPTS } from './claimed-run.ts'
import type { Lease } from './lease.ts'
import type { SourceForAgent } from '../sources/index.ts'

/** A session that was just leased, with the first run to execute. */
export interface AcquiredSession {
  readonly lease: Lease
  readonly organizationId: string
  /** A run that this acquisition ended as failed, because it had no attempt left; null when there is none. */
  readonly exhaustedRunId: string | null
  /**
   * Null after an exhausted run, or when the start is not visible to the statement's snapshot, or was deleted: `claimNextRun`
   * decides.
   */
  readonly run: ClaimedRun | null
  /** The organization's webhook sources, in the order of their names; null when they are many or large (`listSmallSources`). */
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

/** The one row of an acquisition. Sources are separate, because many sessions belong to one organization. */
interface AcquiredRow {
  readonly isMore: boolean
  readonly sessions: readonly Omit<AcquiredSession, 'sources'>[]
  readonly sourcesByOrganization: Record<string, readonly SourceForAgent[]>
}

// Acquires every session that is free: it has work and no lease, or one that expired by the database's clock, is not parked, and its
// organization is not suspended. A parked session is one whose `waiting_since` is in the future. `claimed` ends a run without an attempt left, and `acquired` moves its session past it.
const ACQUIRE_ALL_SESSIONS: NamedStatement = {
  name: 'acquire-all-sessions',
  text: `
    WITH candidate AS MATERIALIZED (
      SELECT id, last_finished_number + 1 AS number FROM sessions
      WHERE id = ANY ($3::uuid[])
        AND last_finished_number < last_start_number
        AND (lease_until IS NULL OR lease_until < clock_timestamp())
        AND waiting_since <= clock_timestamp()
        AND NOT (SELECT is_suspended FROM organizations WHERE organizations.id = sessions.organization_id)
      FOR NO KEY UPDATE SKIP LOCKED
    ),
    claimed AS (
      UPDATE starts SET
        status = CASE WHEN attempts < $4 THEN 'running' ELSE 'failed' END,
        error = CASE WHEN attempts >= $4 THEN $5 END,
        attempts = least(attempts + 1, $4),
        started_at = coalesce(started_at, now()),
        finished_at = CASE WHEN attempts >= $4 THEN now() END
      FROM candidate WHERE starts.session_id = candidate.id AND starts.number = candidate.number
      RETURNING starts.*
    ),
    acquired AS MATERIALIZED (
      UPDATE sessions SET
        lease_owner = $1,
        lease_epoch = lease_epoch + 1,
        lease_until = clock_timestamp() + $2 * interval '1 millisecond',
        last_finished_number = CASE WHEN claimed.status = 'failed' THEN candidate.number ELSE last_finished_number END,
        waiting_since = CASE WHEN claimed.status = 'failed'
          THEN CASE WHEN last_start_number > candidate.number THEN now() END ELSE waiting_since END
      FROM candidate LEFT JOIN claimed ON claimed.session_id = candidate.id
      WHERE sessions.id = candidate.id
      RETURNING sessions.id, sessions.organization_id, lease_epoch
    )
    SELECT
      false AS "isMore",
      (
        SELECT coalesce(json_agg(json_build_object(
          'lease', json_build_object('sessionId', acquired.id, 'epoch', acquired.lease_epoch),
          'organizationId', acquired.organization_id,
          'exhaustedRunId', CASE WHEN claimed.status = 'failed' THEN claimed.id END,
          'run', CASE WHEN claimed.status = 'running' AND workflows.id IS NOT NULL THEN ${CLAIMED_RUN} END
        )), '[]')
        FROM acquired
        LEFT JOIN claimed ON claimed.session_id = acquired.id
        LEFT JOIN workflows ON workflows.id = claimed.workflow_id
      ) AS sessions,
      (
        SELECT coalesce(json_object_agg(organization_id, sources), '{}')
        FROM (
          SELECT organization_id, coalesce(json_agg(json_build_object(
            'id', id, 'name', name, 'description', description, 'exampleRequestBody', example_request_body
          ) ORDER BY name COLLATE "C", id) FILTER (WHERE id IS NOT NULL), '[]') AS sources
          FROM (
            SELECT organization.id AS organization_id, source.*, count(*) OVER in_organization AS count,
              sum(source.bytes) OVER in_organization AS total_bytes
            FROM (SELECT DISTINCT organization_id AS id FROM acquired) AS organization
            LEFT JOIN LATERAL (
              SELECT id, name, description, example_request_body, octet_length(description) +
                CASE WHEN pg_column_size(example_request_body) <= 2048
                  THEN octet_length(example_request_body::text) ELSE 1048576 END AS bytes
              FROM webhook_sources
              WHERE organization_id = organization.id AND deleted_at IS NULL
              LIMIT 21
            ) AS source ON true
            WINDOW in_organization AS (PARTITION BY organization.id)
          ) AS counted
          WHERE count <= 20 AND coalesce(total_bytes, 0) <= 16384
          GROUP BY organization_id
        ) AS by_organization
      ) AS "sourcesByOrganization"`,
}

// The same where slots or shares may not suffice: `ranked` gives the slots to organizations in turn, the one with the fewest
// sessions at this runner first. Begun and ended alone, this statement takes 0.1 ms (12 %) longer than the one above.
const ACQUIRE_SESSIONS: NamedStatement = {
  name: 'acquire-sessions',
  text: `
    WITH leased AS (
      SELECT * FROM unnest($5::uuid[], $6::integer[]) AS leased (organization_id, sessions)
    ),
    candidate AS MATERIALIZED (
      SELECT id, organization_id, waiting_since, last_finished_number + 1 AS number FROM sessions
      WHERE id = ANY ($7::uuid[])
        AND last_finished_number < last_start_number
        AND (lease_until IS NULL OR lease_until < clock_timestamp())
        AND waiting_since <= clock_timestamp()
        AND NOT (SELECT is_suspended FROM organizations WHERE organizations.id = sessions.organization_id)
      FOR NO KEY UPDATE SKIP LOCKED
    ),
    ranked AS (
      SELECT candidate.id, candidate.number, candidate.waiting_since, coalesce(leased.sessions, 0) + row_number() OVER (
        PARTITION BY candidate.organization_id ORDER BY candidate.waiting_since, candidate.id
      ) AS rank
      FROM candidate LEFT JOIN leased ON leased.organization_id = candidate.organization_id
    ),
    chosen AS MATERIALIZED (
      SELECT id, number FROM ranked WHERE rank <= $4 ORDER BY rank, waiting_since LIMIT $3
    ),
    claimed AS (
      UPDATE starts SET
        status = CASE WHEN attempts < $8 THEN 'running' ELSE 'failed' END,
        error = CASE WHEN attempts >= $8 THEN $9 END,
        attempts = least(attempts + 1, $8),
        started_at = coalesce(started_at, now()),
        finished_at = CASE WHEN attempts >= $8 THEN now() END
      FROM chosen WHERE starts.session_id = chosen.id AND starts.number = chosen.number
      RETURNING starts.*
    ),
    exhausted AS MATERIALIZED (
      SELECT array_agg(session_id) AS session_ids FROM claimed WHERE status = 'failed'
    ),
    acquired AS MATERIALIZED (
      UPDATE sessions SET
        lease_owner = $1,
        lease_epoch = lease_epoch + 1,
        lease_until = clock_timestamp() + $2 * interval '1 millisecond',
        last_finished_number = CASE WHEN id = ANY ((SELECT session_ids FROM exhausted)::uuid[])
          THEN last_finished_number + 1 ELSE last_finished_number END,
        waiting_since = CASE WHEN id = ANY ((SELECT session_ids FROM exhausted)::uuid[])
          THEN CASE WHEN last_start_number > last_finished_number + 1 THEN now() END ELSE waiting_since END
      WHERE id = ANY (ARRAY(SELECT id FROM chosen))
      RETURNING id, organization_id, lease_epoch
    )
    SELECT
      (SELECT count(*) FROM candidate) > (SELECT count(*) FROM chosen) AS "isMore",
      (
        SELECT coalesce(json_agg(json_build_object(
          'lease', json_build_object('sessionId', acquired.id, 'epoch', acquired.lease_epoch),
          'organizationId', acquired.organization_id,
          'exhaustedRunId', CASE WHEN claimed.status = 'failed' THEN claimed.id END,
          'run', CASE WHEN claimed.status = 'running' AND workflows.id IS NOT NULL THEN ${CLAIMED_RUN} END
        )), '[]')
        FROM acquired
        LEFT JOIN claimed ON claimed.session_id = acquired.id
        LEFT JOIN workflows ON workflows.id = claimed.workflow_id
      ) AS sessions,
      (
        SELECT coalesce(json_object_agg(organization_id, sources), '{}')
        FROM (
          SELECT organization_id, coalesce(json_agg(json_build_object(
            'id', id, 'name', name, 'description', description, 'exampleRequestBody', example_request_body
          ) ORDER BY name COLLATE "C", id) FILTER (WHERE id IS NOT NULL), '[]') AS sources
          FROM (
            SELECT organization.id AS organization_id, source.*, count(*) OVER in_organization AS count,
              sum(source.bytes) OVER in_organization AS total_bytes
            FROM (SELECT DISTINCT organization_id AS id FROM acquired) AS organization
            LEFT JOIN LATERAL (
              SELECT id, name, description, example_request_body, octet_length(description) +
                CASE WHEN pg_column_size(example_request_body) <= 2048
                  THEN octet_length(example_request_body::text) ELSE 1048576 END AS bytes
              FROM webhook_sources
              WHERE organization_id = organization.id AND deleted_at IS NULL
              LIMIT 21
            ) AS source ON true
            WINDOW in_organization AS (PARTITION BY organization.id)
          ) AS counted
          WHERE count <= 20 AND coalesce(total_bytes, 0) <= 16384
          GROUP BY organization_id
        ) AS by_organization
      ) AS "sourcesByOrganization"`,
}

/** The error of a run that is not attempted again because its runner died in each attempt (contract README, "Runs"). */
export const TOO_MANY_ATTEMPTS = `too_many_attempts: The run was started ${MAX_RUN_ATTEMPTS} times, and its runner died each time`

/**
 * Leases those of the sessions that are free. A run without an attempt left ends here, before anything of it is read: it may be what
 * kills its runners. The other sessions have a live lease or no work, belong to a suspended organization, or do not
 * exist.
 */
export async function acquireSessions(
  db: Db,
  options: AcquireOptions,
  sessionIds: readonly string[],
): Promise<AcquiredSessions> {
  const { owner, leaseMs } = options
  const exhausted = [MAX_RUN_ATTEMPTS, TOO_MANY_ATTEMPTS]
  const { rows } = hasSlotsFor(options, sessionIds.length)
    ? await runStatement<AcquiredRow>(db, ACQUIRE_ALL_SESSIONS, [owner, leaseMs, sessionIds, ...exhausted])
    : await runStatement<AcquiredRow>(db, ACQUIRE_SESSIONS, [...toValues(options), sessionIds, ...exhausted])
  return toAcquiredSessions(rows)
}

/** Whether this many sessions can be acquired, of whichever organizations they are. */
function hasSlotsFor({ slots, maxPerOrganization, leasedByOrganization }: AcquireOptions, sessions: number): boolean {
  return sessions <= slots && Math.max(0, ...leasedByOrganization.values()) + sessions <= maxPerOrganization
}

/** How many organizations one sweep visits: it costs an index probe for each. */
const ORGANIZATIONS_PER_SWEEP = 500

// The recursive part goes from organization to organization along the index sessions_with_work, and `candidate` reads the
// sessions of each that have waited longest: one organization with many waiting sessions does not hide the others. It reads
// one session more than may be acquired, which shows whether there is more.
const ACQUIRE_WAITING_SESSIONS: NamedStatement = {
  name: 'acquire-waiting-sessions',
  text: `
    WITH RECURSIVE leased AS (
      SELECT * FROM unnest($5::uuid[], $6::integer[]) AS leased (organization_id, sessions)
    ),
    organization (id, position) AS (
      (
        SELECT organization_id, 1 FROM sessions
        WHERE last_finished_number < last_start_number AND organization_id >= $7
        ORDER BY organization_id LIMIT 1
      )
      UNION ALL
      SELECT (
        SELECT organization_id FROM sessions
        WHERE last_finished_number < last_start_number AND organization_id > organization.id
        ORDER BY organization_id LIMIT 1
      ), position + 1
      FROM organization WHERE id IS NOT NULL AND position < $8
    ),
    candidate AS MATERIALIZED (
      SELECT waiting.* FROM organization
      JOIN organizations ON organizations.id = organization.id AND NOT organizations.is_suspended
      LEFT JOIN leased ON leased.organization_id = organization.id
      CROSS JOIN LATERAL (
        SELECT id, organization_id, waiting_since, last_finished_number + 1 AS number FROM sessions
        WHERE organization_id = organization.id
          AND last_finished_number < last_start_number
          AND (lease_until IS NULL OR lease_until < clock_timestamp())
          AND waiting_since <= clock_timestamp()
        ORDER BY waiting_since, id
        LIMIT 1 + greatest(0, least($3::bigint, $4::bigint - coalesce(leased.sessions, 0)))
        FOR NO KEY UPDATE SKIP LOCKED
      ) AS waiting
    ),
    ranked AS (
      SELECT candidate.id, candidate.number, candidate.waiting_since, coalesce(leased.sessions, 0) + row_number() OVER (
        PARTITION BY candidate.organization_id ORDER BY candidate.waiting_since, candidate.id
      ) AS rank
      FROM candidate LEFT JOIN leased ON leased.organization_id = candidate.organization_id
    ),
    chosen AS MATERIALIZED (
      SELECT id, number FROM ranked WHERE rank <= $4 ORDER BY rank, waiting_since LIMIT $3
    ),
    claimed AS (
      UPDATE starts SET
        status = CASE WHEN attempts < $9 THEN 'running' ELSE 'failed' END,
        error = CASE WHEN attempts >= $9 THEN $10 END,
        attempts = least(attempts + 1, $9),
        started_at = coalesce(started_at, now()),
        finished_at = CASE WHEN attempts >= $9 THEN now() END
      FROM chosen WHERE starts.session_id = chosen.id AND starts.number = chosen.number
      RETURNING starts.*
    ),
    exhausted AS MATERIALIZED (
      SELECT array_agg(session_id) AS session_ids FROM claimed WHERE status = 'failed'
    ),
    acquired AS MATERIALIZED (
      UPDATE sessions SET
        lease_owner = $1,
        lease_epoch = lease_epoch + 1,
        lease_until = clock_timestamp() + $2 * interval '1 millisecond',
        last_finished_number = CASE WHEN id = ANY ((SELECT session_ids FROM exhausted)::uuid[])
          THEN last_finished_number + 1 ELSE last_finished_number END,
        waiting_since = CASE WHEN id = ANY ((SELECT session_ids FROM exhausted)::uuid[])
          THEN CASE WHEN last_start_number > last_finished_number + 1 THEN now() END ELSE waiting_since END
      WHERE id = ANY (ARRAY(SELECT id FROM chosen))
      RETURNING id, organization_id, lease_epoch
    )
    SELECT
      (SELECT id FROM organization WHERE position = $8) AS "lastOrganizationId",
      (SELECT count(*) FROM candidate) > (SELECT count(*) FROM chosen) AS "isMore",
      (
        SELECT coalesce(json_agg(json_build_object(
          'lease', json_build_object('sessionId', acquired.id, 'epoch', acquired.lease_epoch),
          'organizationId', acquired.organization_id,
          'exhaustedRunId', CASE WHEN claimed.status = 'failed' THEN claimed.id END,
          'run', CASE WHEN claimed.status = 'running' AND workflows.id IS NOT NULL THEN ${CLAIMED_RUN} END
        )), '[]')
        FROM acquired
        LEFT JOIN claimed ON claimed.session_id = acquired.id
        LEFT JOIN workflows ON workflows.id = claimed.workflow_id
      ) AS sessions,
      (
        SELECT coalesce(json_object_agg(organization_id, sources), '{}')
        FROM (
          SELECT organization_id, coalesce(json_agg(json_build_object(
            'id', id, 'name', name, 'description', description, 'exampleRequestBody', example_request_body
          ) ORDER BY name COLLATE "C", id) FILTER (WHERE id IS NOT NULL), '[]') AS sources
          FROM (
            SELECT organization.id AS organization_id, source.*, count(*) OVER in_organization AS count,
              sum(source.bytes) OVER in_organization AS total_bytes
            FROM (SELECT DISTINCT organization_id AS id FROM acquired) AS organization
            LEFT JOIN LATERAL (
              SELECT id, name, description, example_request_body, octet_length(description) +
                CASE WHEN pg_column_size(example_request_body) <= 2048
                  THEN octet_length(example_request_body::text) ELSE 1048576 END AS bytes
              FROM webhook_sources
              WHERE organization_id = organization.id AND deleted_at IS NULL
              LIMIT 21
            ) AS source ON true
            WINDOW in_organization AS (PARTITION BY organization.id)
          ) AS counted
          WHERE count <= 20 AND coalesce(total_bytes, 0) <= 16384
          GROUP BY organization_id
        ) AS by_organization
      ) AS "sourcesByOrganization"`,
}

/**
 * Leases free sessions of any organization: the sweep, which finds work whose queue message was lost. The slots go to
 * organizations in turn, and within each to the session that has waited longest. `next` is where the next sweep continues.
 */
export async function acquireWaitingSessions(
  db: Db,
  options: AcquireOptions,
  from: string = NIL_UUID,
): Promise<AcquiredSessions & { next: string }> {
  const { rows } = await runStatement<AcquiredRow & { lastOrganizationId: string | null }>(
    db,
    ACQUIRE_WAITING_SESSIONS,
    [...toValues(options), from, ORGANIZATIONS_PER_SWEEP, MAX_RUN_ATTEMPTS, TOO_MANY_ATTEMPTS],
  )
  return { ...toAcquiredSessions(rows), next: rows[0]?.lastOrganizationId ?? NIL_UUID }
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

function toAcquiredSessions([row]: readonly AcquiredRow[]): AcquiredSessions {
  if (!row) return { sessions: [], isMore: false }
  const sessions = row.sessions.map((session) => ({
    ...session,
    sources: row.sourcesByOrganization[session.organizationId] ?? null,
  }))
  return { sessions, isMore: row.isMore }
}

/** A lease that is still its owner's. */
export interface RenewableLease extends Lease {
  /** False when another transaction has locked the session's row, so that the lease has to be renewed again soon. */
  readonly isRenewed: boolean
}

// Waits for no row: one that stays locked would let all leases of the runner expire.
const RENEW_LEASES: NamedStatement = {
  name: 'renew-leases',
  text: `
    WITH lease AS MATERIALIZED (
      SELECT * FROM unnest($3::uuid[], $4::bigint[]) AS lease (session_id, epoch)
    ),
    locked AS MATERIALIZED (
      SELECT id, lease_epoch FROM sessions
      WHERE id = ANY ($3::uuid[]) AND lease_owner = $1
      FOR NO KEY UPDATE SKIP LOCKED
    ),
    renewed AS (
      UPDATE sessions SET lease_until = clock_timestamp() + $2 * interval '1 millisecond'
      WHERE id = ANY (ARRAY(
        SELECT locked.id FROM locked
        JOIN lease ON lease.session_id = locked.id AND lease.epoch = locked.lease_epoch
      ))
      RETURNING id
    )
    SELECT lease.session_id AS "sessionId", lease.epoch::float8 AS epoch, renewed.id IS NOT NULL AS "isRenewed"
    FROM lease
    JOIN sessions ON sessions.id = lease.session_id AND sessions.lease_epoch = lease.epoch AND sessions.lease_owner = $1
    LEFT JOIN renewed ON renewed.id = lease.session_id`,
}

/** Renews a runner's leases in one statement, without waiting. Resolves to those that are still its own; the others are lost. */
export async function renewLeases(
  db: Db,
  owner: string,
  leaseMs: number,
  leases: readonly Lease[],
): Promise<readonly RenewableLease[]> {
  const { rows } = await runStatement<RenewableLease>(db, RENEW_LEASES, [
    owner,
    leaseMs,
    leases.map(({ sessionId }) => sessionId),
    leases.map(({ epoch }) => epoch),
  ])
  return rows
}

// The condition with ANY keeps PostgreSQL from reading all running starts, which it prefers while the table is empty.
const RELEASE_SESSIONS: NamedStatement = {
  name: 'release-sessions',
  text: `
    WITH lease AS MATERIALIZED (
      SELECT * FROM unnest($2::uuid[], $3::bigint[], $4::float8[]) AS lease (session_id, epoch, parked_ms)
    ),
    locked AS MATERIALIZED (
      SELECT id, lease_epoch, last_finished_number + 1 AS number FROM sessions
      WHERE id = ANY ($2::uuid[]) AND lease_owner = $1
      ORDER BY id FOR NO KEY UPDATE
    ),
    released AS MATERIALIZED (
      SELECT locked.id, locked.number, lease.parked_ms FROM locked
      JOIN lease ON lease.session_id = locked.id AND lease.epoch = locked.lease_epoch
    ),
    queued AS (
      UPDATE starts SET status = 'queued', attempts = attempts - 1
      FROM released
      WHERE starts.session_id = ANY ($2::uuid[]) AND starts.session_id = released.id
        AND starts.number = released.number AND starts.status = 'running'
    )
    UPDATE sessions SET lease_owner = NULL, lease_until = NULL,
      waiting_since = CASE WHEN parked_ms IS NULL THEN waiting_since
        ELSE clock_timestamp() + parked_ms * interval '1 millisecond' END
    FROM released WHERE sessions.id = ANY (ARRAY(SELECT id FROM released)) AND sessions.id = released.id`,
}

/** A lease to release. */
export interface ReleasedLease extends Lease {
  /** Parks the session: it is not acquired before this time has passed. Without it, it can be acquired at once. */
  readonly parkedMs?: number
}

/**
 * Releases sessions whose run was interrupted between two steps: the run is queued again, and the interruption does not
 * count as an attempt. Lost leases are skipped.
 */
export async function releaseSessions(db: Db, owner: string, leases: readonly ReleasedLease[]): Promise<void> {
  await runStatement(db, RELEASE_SESSIONS, [
    owner,
    leases.map(({ sessionId }) => sessionId),
    leases.map(({ epoch }) => epoch),
    leases.map(({ parkedMs }) => parkedMs ?? null),
  ])
}

/** The work that waits for a runner, for the metrics. */
export interface Backlog {
  /** Sessions with work and no live lease, without the parked ones. */
  readonly sessions: number
  /** How long the longest waiting of them has waited; null when there is none. */
  readonly oldestWaitMs: number | null
}

/** Counts the sessions that wait for a runner. Parked ones and those of suspended organizations wait on purpose. */
export async function measureBacklog(db: Db): Promise<Backlog> {
  const { rows } = await db.pool.query<Backlog>(
    `SELECT count(*)::integer AS sessions,
            (1000 * extract(epoch FROM clock_timestamp() - min(waiting_since)))::float8 AS "oldestWaitMs"
     FROM sessions
     WHERE last_finished_number < last_start_number
       AND (lease_until IS NULL OR lease_until < clock_timestamp())
       AND waiting_since <= clock_timestamp()
       AND NOT (SELECT is_suspended FROM organizations WHERE organizations.id = sessions.organization_id)`,
  )
  return rows[0] ?? { sessions: 0, oldestWaitMs: null }
}
