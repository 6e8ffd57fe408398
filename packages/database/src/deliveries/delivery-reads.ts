import type {
  AppDeliveryOut,
  DeliveryDetailOut,
  DeliveryKind,
  DeliveryOut,
  DeliveryOutcome,
} from '@workflow-service/contract'
import { escapeLiteral } from 'pg'
import {
  addWords,
  column,
  type Connection,
  datesToIso,
  type Db,
  matches,
  paging,
  parseSearch,
  queryRows,
  runStatement,
  statement,
  type WordSearch,
} from '../connection/index.ts'
import {
  type Candidates,
  type Compared,
  isDeliveryVisible,
  readFound,
  rowsWithIds,
  USER_NAME,
  type Viewer,
} from '../organizations/index.ts'
import { DELIVERY_COLUMNS, NEEDS_APPROVAL } from './deliveries.ts'

/** A larger body is left out of lists: a page has up to 100 entries. */
const LISTED_BODY_MAX_BYTES = 8_192
const MAX_RESENT_AS = 20
const MAX_DELIVERIES_OF_RUN = 200

/** The columns of a delivery as the page shows it, with its body if the condition holds. */
const deliveryColumns = (hasBody: string) => `delivery.id, delivery.organization_id, delivery.source_id, delivery.kind,
  delivery.outcome, delivery.status, delivery.reason, delivery.mismatches, delivery.duration_ms, delivery.answer,
  CASE WHEN ${hasBody} THEN delivery.request_body END AS request_body, delivery.session_id, delivery.run_id,
  delivery.request_id, delivery.created_at, delivery.finished_at, delivery.resend_of,
  (
    SELECT name FROM webhook_sources
    WHERE webhook_sources.organization_id = delivery.organization_id AND webhook_sources.id = delivery.source_id
  ) AS source_name,
  CASE WHEN workflow.id IS NOT NULL THEN json_build_object('id', workflow.id, 'name', workflow.name) END AS workflow,
  coalesce((
    SELECT json_agg(id) FROM (
      SELECT id FROM deliveries WHERE resend_of = delivery.id ORDER BY created_at, id LIMIT ${MAX_RESENT_AS}
    ) AS resend
  ), '[]') AS resent_as,
  (
    SELECT json_build_object('id', users.id, 'name', ${USER_NAME}) FROM users
    WHERE users.organization_id = delivery.organization_id AND users.id = delivery.sent_by
  ) AS sent_by`

/** Joins the workflow of the delivery's run. Both joins find their row by key. */
const JOIN_WORKFLOW = `
  LEFT JOIN starts AS start ON start.organization_id = delivery.organization_id AND start.id = delivery.run_id
  LEFT JOIN workflows AS workflow ON workflow.id = start.workflow_id`

const IS_VISIBLE = isDeliveryVisible('$2', { isJoined: true })

const HAS_SMALL_BODY = `octet_length(delivery.request_body::text) <= ${LISTED_BODY_MAX_BYTES}`

/** Which deliveries to list: those that match every given filter. */
export interface DeliveryListQuery {
  /** Only the log of this source; it need not be saved. */
  readonly sourceId?: string | undefined
  readonly outcome?: DeliveryOutcome | undefined
  readonly kind?: DeliveryKind | undefined
  /** Recorded at this time or later. */
  readonly since?: Date | undefined
  /** Recorded before this time. */
  readonly until?: Date | undefined
  /** The status of the answer. */
  readonly status?: number | undefined
  readonly workflowId?: string | undefined
  /** Whether a person has sent its payload again. */
  readonly isSentAgain?: boolean | undefined
  /** Whether it is a payload that was not accepted, and that is not done. */
  readonly needsAttention?: boolean | undefined
  /** Words of the payload or of the text of its start, ignoring case, or the last 8 characters of an id. */
  readonly search?: string | undefined
  readonly limit: number
  /** Continues after this entry, the last one of the page before. */
  readonly after?: paging.TimePosition | undefined
}

/** Sources of an organization whose logs are read together. */
export const MAX_SOURCES = 1_000

/** The text in which deliveries are searched, for their rows named `delivery` and `start`. */
export const DELIVERY_TEXT = `concat_ws(' ', delivery.request_body::text, start.context, delivery.id,
  right(delivery.id::text, 8), delivery.run_id, right(delivery.run_id::text, 8), delivery.request_id)`

/**
 * The deliveries of a source, or of all, that the viewer sees, newest first: with a search or a workflow by the search
 * index, else the newest entries of each source's log by its index. What no index serves is compared in a bounded
 * number of entries, so that a page may have fewer than `limit`, or none, before the last one.
 */
export async function listVisibleDeliveries(
  db: Db,
  viewer: Viewer,
  query: DeliveryListQuery,
): Promise<paging.ReadPage<AppDeliveryOut>> {
  const { rows, next } = await listVisibleIds(db, viewer, query)
  return { rows: await findVisibleDeliveries(db, viewer, null, rows), next }
}

/** Which entries of a source's log to list. */
export type DeliveryLogQuery = Pick<DeliveryListQuery, 'outcome' | 'kind' | 'since' | 'until' | 'limit' | 'after'> & {
  readonly sourceId: string
}

/** A delivery as it is recorded, with what its endpoint answered for people: an agent must not read that. */
export type LoggedDelivery = DeliveryOut & Pick<DeliveryDetailOut, 'rejected_answer' | 'answer_headers'>

const NO_FILTER = '/* no filter */'
const LIST_DELIVERIES = statement(
  'deliveries/list-deliveries',
  {
    ...DELIVERY_COLUMNS,
    rejected_answer: column.text().orNull,
    answer_headers: column.json<Record<string, string>>().orNull,
  },
  { FILTER: NO_FILTER },
)

/** A page of a source's log, newest first, each entry with its whole body (contract README, "Deliveries"). */
export async function listDeliveries(
  db: Connection,
  organizationId: string,
  query: DeliveryLogQuery,
): Promise<paging.ReadPage<LoggedDelivery>> {
  const { sourceId, outcome, kind, since, until, limit, after } = query
  const filters = [
    ...(outcome ? [`AND outcome = ${escapeLiteral(outcome)}`] : []),
    ...(kind ? [`AND kind = ${escapeLiteral(kind)}`] : []),
  ]
  const filtered = {
    ...LIST_DELIVERIES,
    name: [LIST_DELIVERIES.name, outcome, kind].filter((part) => part !== undefined).join('-'),
    text: LIST_DELIVERIES.text.replace(NO_FILTER, filters.join(' ')),
  }
  // One more than the page shows whether another page follows.
  const values = [organizationId, sourceId, since ?? '-infinity', ...paging.positionParams(after, until), limit + 1]
  const { rows: found } = await runStatement(db, filtered, values)
  const rows = found.slice(0, limit)
  const last = found.length > limit ? rows.at(-1) : undefined
  return {
    rows: rows.map((row) => datesToIso<LoggedDelivery>(row)),
    next: last && { createdAt: last.created_at, id: last.id },
  }
}

/** The ids of the deliveries that the viewer sees. */
export async function listVisibleIds(
  db: Db,
  viewer: Viewer,
  query: DeliveryListQuery,
): Promise<paging.ReadPage<string>> {
  const { sourceId, workflowId, limit, after, since, until } = query
  const search = parseSearch(query.search)
  if (!search) return { rows: [], next: undefined }
  const words = new Set(search.words)
  if (workflowId !== undefined) addWords(workflowId, words)
  if (words.size > 0 && sourceId !== undefined) addWords(sourceId, words)
  return await readFound(
    db,
    { organizationId: viewer.organizationId, kind: 'deliveries', words },
    { limit, after, since, until },
    (candidates, position) => compareDeliveries(db, viewer, { ...query, after: position }, search, candidates),
  )
}

/** Compares entries with the filters. */
async function compareDeliveries(
  db: Db,
  { organizationId, memberId }: Viewer,
  query: DeliveryListQuery,
  { parts, patterns }: WordSearch,
  candidates: Candidates,
): Promise<Compared[]> {
  const { sourceId, outcome, kind, since, until, after, status, workflowId, isSentAgain, needsAttention } = query
  // Optional filters are part of the text, so that PostgreSQL recognizes the partial index that serves each of them.
  const filter = `organization_id = $1 AND created_at >= $4 AND (created_at, id) < ($5, $6)
    ${outcome ? `AND outcome = ${escapeLiteral(outcome)}` : ''} ${kind ? `AND kind = ${escapeLiteral(kind)}` : ''}`
  const newest = (from: string, condition: string) => `SELECT * FROM ${from} WHERE ${condition} AND ${filter}
    ORDER BY created_at DESC, id DESC ${'count' in candidates ? `LIMIT ${candidates.count}` : ''}`
  const rowsOf =
    'ids' in candidates
      ? newest(rowsWithIds('deliveries', candidates.ids), '($3::uuid IS NULL OR source_id = $3)')
      : sourceId !== undefined
        ? newest('deliveries', 'source_id = $3')
        : `SELECT of_source.* FROM (
             SELECT id FROM webhook_sources WHERE organization_id = $1 AND $3::uuid IS NULL LIMIT ${MAX_SOURCES}
           ) AS source
           CROSS JOIN LATERAL (${newest('deliveries', 'source_id = source.id')}) AS of_source
           ORDER BY of_source.created_at DESC, of_source.id DESC LIMIT ${candidates.count}`
  const newerThan = 'newerThan' in candidates ? candidates.newerThan : undefined
  const { rows } = await db.pool.query<Compared>(
    `SELECT * FROM (SELECT delivery.id, delivery.created_at AS "createdAt", coalesce(${IS_VISIBLE}
       AND ($7::integer IS NULL OR delivery.status = $7)
       AND ($8::uuid IS NULL OR start.workflow_id = $8)
       AND ($9::boolean IS NULL OR $9 = (
         (SELECT true FROM deliveries AS again WHERE again.resend_of = delivery.id LIMIT 1) IS NOT NULL
       ))
       AND ($10::boolean IS NULL OR $10 = (
         delivery.kind = 'payload' AND delivery.outcome NOT IN ('accepted', 'in_flight') AND delivery.handled_at IS NULL
       ))
       AND ${matches(DELIVERY_TEXT, '$11', '$14')}, false) AS "isVisible"
     FROM (${rowsOf}) AS delivery ${JOIN_WORKFLOW}
     WHERE $12::timestamptz IS NULL OR (delivery.created_at, delivery.id) > ($12, $13::uuid)
     ) AS compared WHERE ${'count' in candidates} OR "isVisible" ORDER BY "createdAt" DESC, id DESC`,
    [
      organizationId,
      memberId,
      sourceId ?? null,
      since ?? '-infinity',
      ...paging.positionParams(after, until),
      status ?? null,
      workflowId ?? null,
      isSentAgain ?? null,
      needsAttention ?? null,
      parts,
      newerThan?.createdAt ?? null,
      newerThan?.id ?? null,
      patterns,
    ],
  )
  return rows
}

/** Those of the deliveries that the viewer sees. */
export async function findVisibleIds(db: Connection, { organizationId, memberId }: Viewer, ids: readonly string[]) {
  const { rows } = await db.pool.query<{ id: string }>(
    `SELECT delivery.id FROM deliveries AS delivery ${JOIN_WORKFLOW}
     WHERE delivery.organization_id = $1 AND delivery.id = ANY ($3::uuid[]) AND ${IS_VISIBLE}`,
    [organizationId, memberId, ids],
  )
  return rows.map(({ id }) => id)
}

/**
 * Those of the entries with these ids that are in the source's log, or in any, and that the viewer sees, newest first.
 */
export async function findVisibleDeliveries(
  db: Db,
  { organizationId, memberId }: Viewer,
  sourceId: string | null,
  ids: readonly string[],
): Promise<AppDeliveryOut[]> {
  if (ids.length === 0) return []
  return await queryRows<AppDeliveryOut>(
    db,
    `SELECT ${deliveryColumns(HAS_SMALL_BODY)}
     FROM deliveries AS delivery ${JOIN_WORKFLOW}
     WHERE delivery.organization_id = $1 AND delivery.id = ANY ($2::uuid[])
       AND ($3::uuid IS NULL OR delivery.source_id = $3)
       AND ${isDeliveryVisible('$4', { isJoined: true })}
     ORDER BY delivery.created_at DESC, delivery.id DESC`,
    [organizationId, ids, sourceId, memberId],
  )
}

/** The deliveries of a run, oldest first, at most 200. The caller has checked that the run may be seen. */
export async function listDeliveriesOfRun(db: Db, organizationId: string, runId: string): Promise<AppDeliveryOut[]> {
  return await queryRows<AppDeliveryOut>(
    db,
    `SELECT ${deliveryColumns(HAS_SMALL_BODY)}
     FROM (
       SELECT * FROM deliveries WHERE run_id = $2 AND organization_id = $1
       ORDER BY created_at, id LIMIT ${MAX_DELIVERIES_OF_RUN}
     ) AS delivery ${JOIN_WORKFLOW}
     ORDER BY delivery.created_at, delivery.id`,
    [organizationId, runId],
  )
}

/** A delivery with what the log's drawer needs besides; `headers` are the caller's. */
export type DeliveryDetail = Omit<DeliveryDetailOut, 'headers'> & {
  /** Whether the source has a signing secret now. */
  readonly has_signing_secret: boolean
}

/** Where the request went. The body of a verification has the URL (contract README, "Verification request"). */
const REQUEST_URL = `CASE delivery.kind
  WHEN 'verification' THEN delivery.request_body->'data'->>'target_url' ELSE delivery.request_url END`

/** A delivery that the viewer sees, in full. */
export async function findVisibleDelivery(db: Db, { organizationId, memberId }: Viewer, deliveryId: string) {
  return (
    await queryRows<DeliveryDetail>(
      db,
      `SELECT found.*, source.endpoint_url, source.signing_secret IS NOT NULL AS has_signing_secret,
       coalesce(${NEEDS_APPROVAL}, false) AS needs_approval,
       (
         SELECT data->>'text' FROM run_steps
         WHERE run_id = found.run_id AND kind = 'tool_result' AND data->'delivery'->>'id' = found.id::text
         ORDER BY position LIMIT 1
       ) AS agent_answer,
       (
         SELECT data->'delivery'->'send_again' FROM run_steps
         WHERE run_id = found.run_id AND kind = 'tool_call' AND data->'delivery'->>'id' = found.id::text
         ORDER BY position LIMIT 1
       ) AS send_again
     FROM (
       SELECT ${deliveryColumns('true')}, ${REQUEST_URL} AS request_url, delivery.rejected_answer,
         delivery.answer_headers
       FROM deliveries AS delivery ${JOIN_WORKFLOW}
       WHERE delivery.organization_id = $1 AND delivery.id = $3 AND ${IS_VISIBLE}
     ) AS found
     LEFT JOIN webhook_sources AS source
       ON source.organization_id = $1 AND source.id = found.source_id AND source.deleted_at IS NULL`,
      [organizationId, memberId, deliveryId],
    )
  )[0]
}
