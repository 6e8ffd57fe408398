import type { QueryResultRow } from 'pg'
import { type Database, type NamedStatement, runStatement } from './client.ts'
import { newId } from './ids.ts'
import { claimRunSql, type ClaimedRun, type ClaimedRunRow, toClaimedRun } from './runs.ts'
import {
  type SourceForAgent,
  type SourceForAgentRow,
  sourcesForAgentsSql,
  toSourcesForAgents,
} from './webhook-sources.ts'

type Pooled = Pick<Database, 'pool'>

/** What a runner holds of a session. The epoch is its own: every later holder has a higher one (design 6.3). */
export interface Lease {
  readonly sessionId: string
  readonly epoch: number
}

/** A session that was just leased, with the first run that is to be done in it. */
export interface AcquiredSession {
  readonly lease: Lease
  readonly organizationId: string
  /** Undefined when its row was not to be seen yet: `claimNextRun` finds it. */
  readonly run: ClaimedRun | undefined
  /** The organization's webhook sources, as the same statement read them. */
  readonly sources: readonly SourceForAgent[]
}

/** Who takes sessions up, and how many may be taken. */
export interface AcquireOptions {
  readonly owner: string
  readonly leaseMs: number
  /** Free places: at most so many sessions are taken. */
  readonly places: number
  /** Sessions of one organization that this runner may hold at once. */
  readonly perOrganization: number
  /** Sessions that it holds, by organization. */
  readonly held: ReadonlyMap<string, number>
}

/** What is free to be taken: work, and no lease or one that ran out. By the database's clock alone. */
const IS_FREE = `session.last_finished_number < session.last_start_number
  AND (session.lease_until IS NULL OR session.lease_until < clock_timestamp())`

/**
 * Leases the sessions of CTE `chosen` (id) and takes up each one's first run, in CTEs `taken`, `run` and `source`. They are
 * found as an array, which Postgres expects to be short: joined, they may be looked for in a scan of the whole table.
 */
function leaseSql(chosen: string): string {
  return `taken AS (
    UPDATE sessions session SET lease_owner = $1, lease_epoch = lease_epoch + 1,
      lease_until = clock_timestamp() + $2 * interval '1 millisecond'
    WHERE session.id = ANY (ARRAY(SELECT id FROM ${chosen}))
    RETURNING session.id, session.organization_id, session.lease_epoch, session.last_finished_number + 1 AS number
  ),
  ${claimRunSql('taken')},
  source AS (${sourcesForAgentsSql('ARRAY(SELECT organization_id FROM taken)')})`
}

/**
 * Leases the candidates, as far as places and shares allow: organizations in turn, so that the one with the fewest
 * sessions at this runner comes first. $1 owner, $2 lease in ms, $3 places, $4 per organization, $5 and $6
 * what is held.
 */
const TAKE_CANDIDATES_SQL = `
  ranked AS (
    SELECT candidate.id, candidate.waiting_since, coalesce(held.sessions, 0) + row_number() OVER (
      PARTITION BY candidate.organization_id ORDER BY candidate.waiting_since, candidate.id
    ) AS place
    FROM candidate LEFT JOIN held ON held.organization_id = candidate.organization_id
  ),
  chosen AS MATERIALIZED (
    SELECT id FROM ranked WHERE place <= $4 ORDER BY place, waiting_since LIMIT $3
  ),
  ${leaseSql('chosen')}`

/** What is read of what was taken. The sources stand in one row, however many there are. */
const TAKEN_SQL = `taken.id AS taken_session_id, taken.organization_id AS taken_organization_id, taken.lease_epoch, run.*,
    CASE WHEN row_number() OVER () = 1 THEN (SELECT json_agg(source) FROM source) END AS sources`

const HELD_SQL = `held AS (
    SELECT * FROM unnest($5::uuid[], $6::integer[]) AS held (organization_id, sessions)
  )`

/** Those of the sessions whose ids are in the array that are free, locked. */
const freeSessionsSql = (ids: string): string => `candidate AS MATERIALIZED (
      SELECT id, organization_id, waiting_since FROM sessions session
      WHERE id = ANY ((SELECT ${ids}::uuid[])::uuid[]) AND ${IS_FREE}
      FOR NO KEY UPDATE SKIP LOCKED
    )`

const TAKE_SESSIONS: NamedStatement = {
  name: 'take-sessions',
  text: `
    WITH ${HELD_SQL},
    ${freeSessionsSql('$7')},
    ${TAKE_CANDIDATES_SQL}
    SELECT seen.*, ${TAKEN_SQL}
    FROM (SELECT (SELECT count(*) FROM candidate) > (SELECT count(*) FROM chosen) AS is_more) AS seen
    LEFT JOIN taken ON true
    LEFT JOIN run ON run.session_id = taken.id`,
}

/** The same where there are places for all of them: there is nothing to choose, and a statement half as long to begin. */
const TAKE_ALL_SESSIONS: NamedStatement = {
  name: 'take-all-sessions',
  text: `
    WITH ${freeSessionsSql('$3')},
    ${leaseSql('candidate')}
    SELECT false AS is_more, ${TAKEN_SQL}
    FROM taken LEFT JOIN run ON run.session_id = taken.id`,
}

/** What was taken, and whether there was more to take than places or shares allowed. */
export interface AcquiredSessions {
  readonly sessions: readonly AcquiredSession[]
  readonly isMore: boolean
}

/** Leases those of the sessions that have work and that nobody holds. The others are busy, finished or unknown. */
export async function acquireSessions(
  db: Pooled,
  taking: AcquireOptions,
  sessionIds: readonly string[],
): Promise<AcquiredSessions> {
  const { owner, leaseMs } = taking
  const { rows } = hasPlacesFor(taking, sessionIds.length)
    ? await runStatement<TakenRow>(db, TAKE_ALL_SESSIONS, [owner, leaseMs, sessionIds])
    : await runStatement<TakenRow>(db, TAKE_SESSIONS, [...takingValues(taking), sessionIds])
  return toTaken(rows)
}

/** Whether so many sessions fit, of whatever organizations they are. */
function hasPlacesFor({ places, perOrganization, held }: AcquireOptions, sessions: number): boolean {
  return sessions <= places && Math.max(0, ...held.values()) + sessions <= perOrganization
}

/** How many organizations one sweep looks at: it costs an index probe for each. */
const ORGANIZATIONS_PER_SWEEP = 500

// Hops from organization to organization along the index, and looks at the longest waiting of each: however many sessions
// one organization has waiting, the others' are found. One more of each than may be taken tells whether there is more.
const TAKE_WAITING_SESSIONS: NamedStatement = {
  name: 'take-waiting-sessions',
  text: `
    WITH RECURSIVE ${HELD_SQL},
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
      FROM organization WHERE id IS NOT NULL AND position < ${ORGANIZATIONS_PER_SWEEP}
    ),
    candidate AS MATERIALIZED (
      SELECT waiting.* FROM organization
      LEFT JOIN held ON held.organization_id = organization.id
      CROSS JOIN LATERAL (
        SELECT id, organization_id, waiting_since FROM sessions session
        WHERE organization_id = organization.id AND ${IS_FREE}
        ORDER BY waiting_since, id
        LIMIT 1 + greatest(0, least($3::bigint, $4::bigint - coalesce(held.sessions, 0)))
        FOR NO KEY UPDATE SKIP LOCKED
      ) AS waiting
    ),
    ${TAKE_CANDIDATES_SQL}
    SELECT visited.*, ${TAKEN_SQL}
    FROM (
      SELECT count(id)::integer AS visited,
        (array_agg(id ORDER BY position DESC) FILTER (WHERE id IS NOT NULL))[1] AS last,
        (SELECT count(*) FROM candidate) > (SELECT count(*) FROM chosen) AS is_more
      FROM organization
    ) AS visited
    LEFT JOIN taken ON true
    LEFT JOIN run ON run.session_id = taken.id`,
}

/** Where a sweep begins, and where the next one goes on. */
export const FIRST_ORGANIZATION = '00000000-0000-0000-0000-000000000000'

/**
 * Leases sessions that have work and no live lease, whatever was published: the sweep (design 6.2). Each organization's
 * longest waiting first, organizations in turn. `next` is where the next sweep begins.
 */
export async function acquireWaitingSessions(
  db: Pooled,
  taking: AcquireOptions,
  from: string = FIRST_ORGANIZATION,
): Promise<AcquiredSessions & { next: string }> {
  const { rows } = await runStatement<TakenRow & { visited: number; last: string | null }>(db, TAKE_WAITING_SESSIONS, [
    ...takingValues(taking),
    from,
  ])
  const [first] = rows
  const isCutOff = first !== undefined && first.visited >= ORGANIZATIONS_PER_SWEEP
  return { ...toTaken(rows), next: (isCutOff && first.last) || FIRST_ORGANIZATION }
}

function takingValues({ owner, leaseMs, places, perOrganization, held }: AcquireOptions): unknown[] {
  return [owner, leaseMs, places, perOrganization, [...held.keys()], [...held.values()]]
}

interface TakenRow extends ClaimedRunRow {
  is_more: boolean
  taken_session_id: string | null
  taken_organization_id: string
  lease_epoch: string
  sources: SourceForAgentRow[] | null
}

function toTaken(rows: readonly TakenRow[]): AcquiredSessions {
  const sources = toSourcesForAgents(rows.flatMap((row) => row.sources ?? []))
  const sessions: AcquiredSession[] = []
  for (const row of rows) {
    if (row.taken_session_id === null) continue
    sessions.push({
      lease: { sessionId: row.taken_session_id, epoch: Number(row.lease_epoch) },
      organizationId: row.taken_organization_id,
      run: toClaimedRun(row),
      sources: sources.get(row.taken_organization_id) ?? [],
    })
  }
  return { sessions, isMore: rows[0]?.is_more ?? false }
}

const RENEW_LEASES: NamedStatement = {
  name: 'renew-leases',
  text: `
    WITH locked AS MATERIALIZED (
      SELECT id, lease_epoch FROM sessions
      WHERE id = ANY ((SELECT $3::uuid[])::uuid[]) AND lease_owner = $1
      ORDER BY id FOR NO KEY UPDATE
    ),
    held AS MATERIALIZED (
      SELECT locked.id FROM locked JOIN unnest((SELECT $3::uuid[]), $4::bigint[]) AS lease (session_id, epoch)
        ON lease.session_id = locked.id AND lease.epoch = locked.lease_epoch
    )
    UPDATE sessions SET lease_until = clock_timestamp() + $2 * interval '1 millisecond'
    WHERE id = ANY (ARRAY(SELECT id FROM held))
    RETURNING id, lease_epoch`,
}

/** Renews all of a runner's leases in one statement, and resolves with those that are still its own: the rest are lost. */
export async function renewLeases(
  db: Pooled,
  owner: string,
  leaseMs: number,
  leases: readonly Lease[],
): Promise<readonly Lease[]> {
  const { rows } = await runStatement<{ id: string; lease_epoch: string }>(db, RENEW_LEASES, [
    owner,
    leaseMs,
    leases.map(({ sessionId }) => sessionId),
    leases.map(({ epoch }) => epoch),
  ])
  return rows.map((row) => ({ sessionId: row.id, epoch: Number(row.lease_epoch) }))
}

const RELEASE_SESSIONS: NamedStatement = {
  name: 'release-sessions',
  text: `
    WITH locked AS MATERIALIZED (
      SELECT id, lease_epoch, last_finished_number + 1 AS number FROM sessions
      WHERE id = ANY ((SELECT $2::uuid[])::uuid[]) AND lease_owner = $1
      ORDER BY id FOR NO KEY UPDATE
    ),
    held AS MATERIALIZED (
      SELECT locked.id, locked.number FROM locked JOIN unnest((SELECT $2::uuid[]), $3::bigint[]) AS lease (session_id, epoch)
        ON lease.session_id = locked.id AND lease.epoch = locked.lease_epoch
    ),
    queued AS (
      UPDATE starts SET status = 'queued', attempts = attempts - 1
      WHERE id = ANY (ARRAY(
        SELECT start.id FROM held CROSS JOIN LATERAL (
          SELECT id FROM starts WHERE session_id = held.id AND number = held.number AND status = 'running' LIMIT 1
        ) AS start
      ))
    )
    UPDATE sessions SET lease_owner = NULL, lease_until = NULL
    WHERE id = ANY (ARRAY(SELECT id FROM held))`,
}

/**
 * Lets sessions go whose run was interrupted between two steps: it is queued again, and the interruption counts as no
 * attempt. Another runner may take them up at once. Leases that are lost are passed over.
 */
export async function releaseSessions(db: Pooled, owner: string, leases: readonly Lease[]): Promise<void> {
  await runStatement(db, RELEASE_SESSIONS, [
    owner,
    leases.map(({ sessionId }) => sessionId),
    leases.map(({ epoch }) => epoch),
  ])
}

/** What waits for a runner: for the metrics. */
export interface Backlog {
  /** Sessions with work that no runner holds. */
  readonly sessions: number
  /** Since when the one waits that has waited longest; null when none does. */
  readonly oldestWaitMs: number | null
}

/** Counts what no runner has taken up. */
export async function measureBacklog(db: Pooled): Promise<Backlog> {
  const { rows } = await db.pool.query<{ sessions: number; oldest_ms: number | null }>(
    `SELECT count(*)::integer AS sessions,
            (extract(epoch FROM clock_timestamp() - min(waiting_since)) * 1000)::float8 AS oldest_ms
     FROM sessions session WHERE ${IS_FREE}`,
  )
  const [row] = rows
  return { sessions: row?.sessions ?? 0, oldestWaitMs: row?.oldest_ms ?? null }
}

// ------------------------------------------------------------------------------------------------ for people (`wf`)

/** A session as `wf sessions` shows it. */
export interface SessionRow {
  readonly id: string
  readonly organization_id: string
  readonly is_open: boolean
  readonly created_at: Date
  readonly closed_at: Date | null
  /** Starts accepted, and runs ended. */
  readonly starts: number
  readonly finished: number
  readonly lease: { readonly owner: string; readonly epoch: number; readonly until: Date } | null
}

/** Makes an open session, or opens a closed one again. The id may be given; a session of another organization is refused. */
export async function openSession(
  db: Pooled,
  organizationId: string,
  sessionId: string = newId(),
): Promise<SessionRow | null> {
  const { rows } = await db.pool.query<StoredSessionRow>(
    `INSERT INTO sessions (id, organization_id) VALUES ($2, $1)
     ON CONFLICT (id) DO UPDATE SET is_open = true, closed_at = NULL WHERE sessions.organization_id = $1
     RETURNING *`,
    [organizationId, sessionId],
  )
  return toSessionRow(rows[0])
}

/** Closes a session; null when the organization has none of this id. Starts that were accepted still run. */
export async function closeSession(db: Pooled, organizationId: string, sessionId: string): Promise<SessionRow | null> {
  const { rows } = await db.pool.query<StoredSessionRow>(
    `UPDATE sessions SET is_open = false, closed_at = coalesce(closed_at, now())
     WHERE organization_id = $1 AND id = $2 RETURNING *`,
    [organizationId, sessionId],
  )
  return toSessionRow(rows[0])
}

/** Any session, for the operator. */
export async function showSession(db: Pooled, sessionId: string): Promise<SessionRow | null> {
  const { rows } = await db.pool.query<StoredSessionRow>('SELECT * FROM sessions WHERE id = $1', [sessionId])
  return toSessionRow(rows[0])
}

interface StoredSessionRow extends QueryResultRow {
  id: string
  organization_id: string
  is_open: boolean
  created_at: Date
  closed_at: Date | null
  last_start_number: string
  last_finished_number: string
  lease_owner: string | null
  lease_epoch: string
  lease_until: Date | null
}

function toSessionRow(row: StoredSessionRow | undefined): SessionRow | null {
  if (!row) return null
  const { lease_owner: owner, lease_until: until } = row
  return {
    id: row.id,
    organization_id: row.organization_id,
    is_open: row.is_open,
    created_at: row.created_at,
    closed_at: row.closed_at,
    starts: Number(row.last_start_number),
    finished: Number(row.last_finished_number),
    lease: owner !== null && until !== null ? { owner, epoch: Number(row.lease_epoch), until } : null,
  }
}
