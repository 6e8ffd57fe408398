import type { DeliveryKind, DeliveryOutcome, FieldError } from '@workflow-service/contract'
import type { QueryResultRow } from 'pg'
import { runStatement, type Database, type NamedStatement } from './client.ts'

/** One outbound request and what came of it (contract 4.5, rule 7). */
export interface Delivery {
  id: string
  organizationId: string
  sourceId: string
  kind: DeliveryKind
  outcome: DeliveryOutcome
  status: number | null
  /** Why it was not accepted, in words. */
  reason: string | null
  /** Of an `invalid` payload: where it does not follow the example. */
  mismatches: FieldError[] | null
  durationMs: number | null
  answer: string | null
  requestBody: Record<string, unknown>
  sessionId: string | null
  runId: string | null
  requestId: string | null
  createdAt: Date
  finishedAt: Date | null
}

/** A delivery to record as `in_flight` before its first byte leaves. */
export interface NewDelivery {
  id: string
  sourceId: string
  /** JSON text, the signing secret left out. */
  requestBody: string
  runId: string | null
  requestId: string
  /** The presence of the process that sends it (presence.ts). */
  sender: string
}

/** The runner's lease under which a payload is sent. */
export interface DeliveryLease {
  sessionId: string
  epoch: number
}

/** What a sending needs of its source. */
export interface DeliveryTarget {
  endpointUrl: string
  /** Encrypted; null when there is none. */
  signingSecret: Buffer | null
  exampleRequestBody: Record<string, unknown>
  /** Goes up with every save of the source. */
  version: number
}

/** Only `claimed` may be sent, by the one caller that got it. */
export type DeliveryClaim =
  | { kind: 'claimed'; target: DeliveryTarget; createdAt: Date }
  /** The id was recorded before, by whomever. */
  | { kind: 'known' }
  | { kind: 'no_source' }
  | { kind: 'lease_lost' }

/** What came of a request. */
export interface DeliveryResult {
  outcome: Exclude<DeliveryOutcome, 'in_flight'>
  status: number | null
  reason: string | null
  mismatches: FieldError[] | null
  durationMs: number | null
  answer: string | null
}

/**
 * Records a payload as `in_flight`, in one statement that also checks the source and, when a run sends it, that the lease
 * is the session's current one (design 6.6). However many claim one id, at most one ever gets `claimed`.
 */
export async function claimDelivery(
  db: Pick<Database, 'pool'>,
  organizationId: string,
  delivery: NewDelivery,
  lease: DeliveryLease | null,
): Promise<DeliveryClaim> {
  const answer = await runStatement<ClaimRow>(db, CLAIM_DELIVERY, [
    delivery.id,
    organizationId,
    delivery.sourceId,
    delivery.requestBody,
    lease?.sessionId ?? null,
    lease?.epoch ?? null,
    delivery.runId,
    delivery.requestId,
    delivery.sender,
  ])
  const row = answer.rows[0]
  if (row?.claimed_at && row.endpoint_url !== null && row.example_request_body !== null && row.version !== null) {
    const target = {
      endpointUrl: row.endpoint_url,
      signingSecret: row.signing_secret,
      exampleRequestBody: row.example_request_body,
      version: row.version,
    }
    return { kind: 'claimed', target, createdAt: row.claimed_at }
  }
  if (row?.is_known) return { kind: 'known' }
  if (row?.endpoint_url === null) return { kind: 'no_source' }
  // With source and lease in place, only a claim that was committed meanwhile can have kept the row out.
  return row?.has_lease ? { kind: 'known' } : { kind: 'lease_lost' }
}

interface ClaimRow extends QueryResultRow {
  claimed_at: Date | null
  is_known: boolean
  has_lease: boolean
  endpoint_url: string | null
  signing_secret: Buffer | null
  example_request_body: Record<string, unknown> | null
  version: number | null
}

const CLAIM_DELIVERY: NamedStatement = {
  name: 'claim_delivery',
  text: `
    WITH source AS (
      SELECT endpoint_url, signing_secret, example_request_body, version FROM webhook_sources
      WHERE organization_id = $2 AND id = $3 AND deleted_at IS NULL
    ), lease AS (
      SELECT $5::uuid IS NULL OR EXISTS (
        SELECT FROM sessions WHERE organization_id = $2 AND id = $5 AND lease_epoch = $6::bigint
      ) AS is_current
    ), claimed AS (
      INSERT INTO deliveries (id, organization_id, source_id, kind, outcome, request_body, session_id, run_id,
        request_id, sender)
      SELECT $1, $2, $3, 'payload', 'in_flight', $4, $5, $7, $8, $9 FROM source, lease WHERE lease.is_current
      ON CONFLICT (id) DO NOTHING
      RETURNING created_at
    )
    SELECT (SELECT created_at FROM claimed) AS claimed_at, EXISTS (SELECT FROM deliveries WHERE id = $1) AS is_known,
      lease.is_current AS has_lease, source.*
    FROM lease LEFT JOIN source ON true`,
}

/** Records a verification request as `in_flight`. The organization must exist. */
export async function recordVerification(
  db: Pick<Database, 'pool'>,
  organizationId: string,
  delivery: Omit<NewDelivery, 'runId'>,
): Promise<void> {
  await db.pool.query(
    `INSERT INTO deliveries (id, organization_id, source_id, kind, outcome, request_body, request_id, sender)
     VALUES ($1, $2, $3, 'verification', 'in_flight', $4, $5, $6)`,
    [delivery.id, organizationId, delivery.sourceId, delivery.requestBody, delivery.requestId, delivery.sender],
  )
}

/**
 * Records what came of a delivery, and answers with the delivery as it then stands. What was known for certain is never
 * written over: only `in_flight`, and `unknown`, over which the truth wins that arrives late.
 */
export async function recordOutcome(
  db: Pick<Database, 'pool'>,
  organizationId: string,
  deliveryId: string,
  result: DeliveryResult,
): Promise<Delivery | undefined> {
  const recorded = await runStatement<DeliveryRow>(db, RECORD_OUTCOME, [
    organizationId,
    deliveryId,
    result.outcome,
    result.status,
    result.reason,
    result.mismatches && JSON.stringify(result.mismatches),
    result.durationMs,
    result.answer,
  ])
  const [row] = recorded.rows
  return row ? toDelivery(row) : await findDelivery(db, organizationId, deliveryId)
}

const COLUMNS = `id, organization_id, source_id, kind, outcome, status, reason, mismatches, duration_ms, answer,
  request_body, session_id, run_id, request_id, sender, created_at, finished_at`

const RECORD_OUTCOME: NamedStatement = {
  name: 'record_delivery_outcome',
  text: `
    UPDATE deliveries SET outcome = $3, status = $4, reason = $5, mismatches = $6, duration_ms = $7, answer = $8,
      finished_at = now()
    WHERE organization_id = $1 AND id = $2
      AND (outcome = 'in_flight' OR (outcome = 'unknown' AND $3 <> 'unknown'))
    RETURNING ${COLUMNS}`,
}

/** One delivery of the organization. */
export async function findDelivery(
  db: Pick<Database, 'pool'>,
  organizationId: string,
  deliveryId: string,
): Promise<Delivery | undefined> {
  const found = await runStatement<DeliveryRow>(db, FIND_DELIVERY, [organizationId, deliveryId])
  return found.rows[0] && toDelivery(found.rows[0])
}

const FIND_DELIVERY: NamedStatement = {
  name: 'find_delivery',
  text: `SELECT ${COLUMNS} FROM deliveries WHERE organization_id = $1 AND id = $2`,
}

/** Which part of a source's log to read. Each filter is served by an index of its own. */
export interface DeliveryQuery {
  sourceId: string
  outcome?: DeliveryOutcome
  kind?: DeliveryKind
  /** From this time on. */
  since?: Date
  /** Before this time. */
  until?: Date
  limit: number
  /** Continue after this entry, the last of the page before. */
  after?: { createdAt: Date; id: string }
}

/** The source's log, newest first. Raw, because a page is cut by a row comparison that the index serves. */
export async function listDeliveries(
  db: Pick<Database, 'pool'>,
  organizationId: string,
  query: DeliveryQuery,
): Promise<Delivery[]> {
  const { text, values } = deliveryQuerySql(organizationId, query)
  const found = await db.pool.query<DeliveryRow>(text, values)
  return found.rows.map(toDelivery)
}

/** The text and values of `listDeliveries`; apart, so that a test can have it explained. */
export function deliveryQuerySql(organizationId: string, query: DeliveryQuery): { text: string; values: unknown[] } {
  const values: unknown[] = []
  const put = (value: unknown): string => `$${values.push(value)}`
  const conditions = [`organization_id = ${put(organizationId)}`, `source_id = ${put(query.sourceId)}`]
  if (query.outcome) conditions.push(`outcome = ${put(query.outcome)}`)
  if (query.kind) conditions.push(`kind = ${put(query.kind)}`)
  if (query.since) conditions.push(`created_at >= ${put(query.since)}`)
  if (query.until) conditions.push(`created_at < ${put(query.until)}`)
  if (query.after) conditions.push(`(created_at, id) < (${put(query.after.createdAt)}, ${put(query.after.id)})`)
  const text = `SELECT ${COLUMNS} FROM deliveries WHERE ${conditions.join(' AND ')}
    ORDER BY created_at DESC, id DESC LIMIT ${put(query.limit)}`
  return { text, values }
}

/** What a run sent, oldest first. */
export async function listRunDeliveries(
  db: Pick<Database, 'pool'>,
  organizationId: string,
  runId: string,
): Promise<Delivery[]> {
  const found = await db.pool.query<DeliveryRow>(
    `SELECT ${COLUMNS} FROM deliveries WHERE organization_id = $1 AND run_id = $2 ORDER BY created_at, id`,
    [organizationId, runId],
  )
  return found.rows.map(toDelivery)
}

interface DeliveryRow extends QueryResultRow {
  id: string
  organization_id: string
  source_id: string
  kind: DeliveryKind
  outcome: DeliveryOutcome
  status: number | null
  reason: string | null
  mismatches: FieldError[] | null
  duration_ms: number | null
  answer: string | null
  request_body: Record<string, unknown>
  session_id: string | null
  run_id: string | null
  request_id: string | null
  sender: string
  created_at: Date
  finished_at: Date | null
}

function toDelivery(row: DeliveryRow): Delivery {
  return {
    id: row.id,
    organizationId: row.organization_id,
    sourceId: row.source_id,
    kind: row.kind,
    outcome: row.outcome,
    status: row.status,
    reason: row.reason,
    mismatches: row.mismatches,
    durationMs: row.duration_ms,
    answer: row.answer,
    requestBody: row.request_body,
    sessionId: row.session_id,
    runId: row.run_id,
    requestId: row.request_id,
    createdAt: row.created_at,
    finishedAt: row.finished_at,
  }
}
