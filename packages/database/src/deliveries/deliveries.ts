import type { DeliveryKind, DeliveryOutcome, FieldError } from '@workflow-service/contract'
import { escapeLiteral } from 'pg'
import { type AuditedBy, recordAuditEvent } from '../organizations/index.ts'
import {
  BOUNDED_EXAMPLE,
  type Db,
  inTransaction,
  type NamedStatement,
  positionParams,
  type Connection,
  runStatement,
} from '../connection/index.ts'

/** One outbound request and its outcome (contract README, "Deliveries"). */
export interface Delivery {
  id: string
  organizationId: string
  sourceId: string
  kind: DeliveryKind
  outcome: DeliveryOutcome
  status: number | null
  /** Why it was not accepted, as a sentence. */
  reason: string | null
  /** For an `invalid` payload: where it differs from the example. */
  mismatches: FieldError[] | null
  durationMs: number | null
  answer: string | null
  requestBody: Record<string, unknown>
  sessionId: string | null
  runId: string | null
  requestId: string | null
  createdAt: Date
  finishedAt: Date | null
  /** The delivery that this one repeats. */
  resendOf: string | null
  /** The user who sent it again. */
  sentBy: string | null
}

/** A delivery to record as `in_flight` before the first byte is sent. */
export interface NewDelivery {
  id: string
  sourceId: string
  /** JSON text without the signing secret. */
  requestBody: string
  runId: string | null
  requestId: string
}

/** The runner's lease under which a payload is sent. */
export interface DeliveryLease {
  sessionId: string
  epoch: number
}

/** What the dispatcher needs of the source to send a payload. */
export interface DeliveryTarget {
  endpointUrl: string
  /** Encrypted; null when the source has none. */
  signingSecret: Buffer | null
  /** Null when it was stored before there were limits and is larger than EXAMPLE_MAX_BYTES. */
  exampleRequestBody: Record<string, unknown> | null
  /** Incremented by every save of the source. */
  version: number
  /** Whether the payload is approved and, once it is accepted, the source needs no further approval: see `endFirstApproval`. */
  isFirstApproval: boolean
}

/** Whether the payload may be sent: only `claimed`, and only by the caller that got it. */
export type DeliveryClaim =
  | { kind: 'claimed'; target: DeliveryTarget; createdAt: Date }
  /** The id was recorded before, for any organization. */
  | { kind: 'known' }
  | { kind: 'no_source' }
  | { kind: 'lease_lost' }
  | { kind: 'organization_suspended' }
  /** The source's payloads need an approval, and this one has none; or a person who may not approve sends it again. */
  | { kind: 'approval_required' }

/** The outcome of a request. */
export interface DeliveryResult {
  outcome: Exclude<DeliveryOutcome, 'in_flight'>
  status: number | null
  reason: string | null
  mismatches: FieldError[] | null
  durationMs: number | null
  answer: string | null
  /** The beginning of a rejected answer's body, for people: not part of `Delivery`, from which the runner's answer is made. */
  rejectedAnswer?: string | null
}

/** A payload to claim. `lease` is null when no runner sends it. */
export interface DeliveryClaimRequest extends NewDelivery {
  organizationId: string
  lease: DeliveryLease | null
  /** Null for a new payload. */
  resend: Resend | null
}

/** What a delivery that repeats an earlier one takes over from it. */
export interface Resend {
  of: string
  sentBy: string | null
  sessionId: string | null
  /** For the audit event; undefined: there is none. */
  by?: AuditedBy | undefined
}

/** Whether the webhook source `source` asks for an approval of a payload that is sent now. */
export const NEEDS_APPROVAL = `(source.approval = 'always' OR (source.approval = 'first' AND source.approved_at IS NULL))`

// Who may approve, and the operator, approves a payload by sending it again. Scalar subqueries find the approval and the person by their
// keys, and only for a source that needs an approval. The lock orders the claim and an edit of the URL, which ends the approval.
const IS_APPROVED = `CASE WHEN NOT ${NEEDS_APPROVAL} THEN true
  WHEN request.resend_of IS NULL THEN coalesce((
    SELECT true FROM approvals
    WHERE delivery_id = request.id AND approvals.organization_id = request.organization_id
      AND approvals.source_id = request.source_id AND status = 'approved' AND request_body::text = request.body
    LIMIT 1 FOR SHARE
  ), false)
  ELSE request.sent_by IS NULL OR coalesce((
    SELECT role IN ('owner', 'admin') AND deactivated_at IS NULL FROM users
    WHERE users.organization_id = request.organization_id AND users.id = request.sent_by
  ), false) END`

// Inserts in the order of the ids, so that two batches with the same ids do not deadlock. The last case of `kind`: a claim
// that committed after this statement's snapshot is the only other reason why the row was not inserted.
const CLAIM_DELIVERIES: NamedStatement = {
  name: 'claim-deliveries',
  text: `
    WITH request AS MATERIALIZED (
      SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::uuid[], $6::bigint[], $7::uuid[], $8::text[],
        $9::uuid[], $10::uuid[])
        WITH ORDINALITY
        AS request (id, organization_id, source_id, body, session_id, epoch, run_id, request_id, resend_of, sent_by, position)
    ),
    checked AS MATERIALIZED (
      SELECT request.*, source.endpoint_url, source.signing_secret, ${BOUNDED_EXAMPLE} AS example, source.version,
        source.id IS NOT NULL AND source.deleted_at IS NULL AS has_source,
        request.epoch IS NULL OR session.id IS NOT NULL AS has_lease,
        coalesce(organization.is_suspended, false) AS is_suspended,
        ${IS_APPROVED} AS is_approved,
        coalesce(${NEEDS_APPROVAL} AND source.approval = 'first', false) AS is_first_approval
      FROM request
      LEFT JOIN organizations AS organization ON organization.id = request.organization_id
      LEFT JOIN webhook_sources AS source
        ON source.organization_id = request.organization_id AND source.id = request.source_id
      LEFT JOIN sessions AS session
        ON session.organization_id = request.organization_id AND session.id = request.session_id
        AND session.lease_epoch = request.epoch
    ),
    claimed AS (
      INSERT INTO deliveries (id, organization_id, source_id, kind, outcome, request_body, session_id, run_id, request_id,
        resend_of, sent_by, request_url)
      SELECT id, organization_id, source_id, 'payload', 'in_flight', body::json, session_id, run_id, request_id, resend_of,
        sent_by, endpoint_url
      FROM checked WHERE has_source AND has_lease AND NOT is_suspended AND is_approved
      ORDER BY id
      ON CONFLICT (id) DO NOTHING
      RETURNING id, created_at
    )
    SELECT checked.id,
      CASE
        WHEN claimed.id IS NOT NULL THEN 'claimed'
        WHEN EXISTS (SELECT FROM deliveries WHERE deliveries.id = checked.id) THEN 'known'
        WHEN NOT has_source THEN 'no_source'
        WHEN NOT has_lease THEN 'lease_lost'
        WHEN is_suspended THEN 'organization_suspended'
        WHEN NOT is_approved THEN 'approval_required'
        ELSE 'known'
      END AS kind,
      claimed.created_at AS "createdAt", endpoint_url AS "endpointUrl", signing_secret AS "signingSecret",
      example AS "exampleRequestBody", version, is_first_approval AS "isFirstApproval"
    FROM checked LEFT JOIN claimed ON claimed.id = checked.id
    ORDER BY position`,
}

/**
 * Records payloads as `in_flight`, any number in one statement. Checks the source of each and, when a run sends it, that the
 * lease is the session's current one. Claims nothing for a suspended organization, nor a payload without the approval that its source asks for. Of all calls with one id, at most one ever gets `claimed`.
 */
export async function claimDeliveries(
  db: Connection,
  requests: readonly DeliveryClaimRequest[],
): Promise<readonly DeliveryClaim[]> {
  const { rows } = await runStatement<{ id: string; kind: DeliveryClaim['kind']; createdAt: Date } & DeliveryTarget>(
    db,
    CLAIM_DELIVERIES,
    [
      requests.map(({ id }) => id),
      requests.map(({ organizationId }) => organizationId),
      requests.map(({ sourceId }) => sourceId),
      requests.map(({ requestBody }) => requestBody),
      requests.map(({ lease, resend }) => (lease ?? resend)?.sessionId ?? null),
      requests.map(({ lease }) => lease?.epoch ?? null),
      requests.map(({ runId }) => runId),
      requests.map(({ requestId }) => requestId),
      requests.map(({ resend }) => resend?.of ?? null),
      requests.map(({ resend }) => resend?.sentBy ?? null),
    ],
  )
  const seen = new Set<string>()
  return rows.map(({ id, kind, createdAt, ...target }): DeliveryClaim => {
    // One row was inserted for an id that the batch contains twice; the first request gets it.
    const isRepeated = seen.has(id)
    seen.add(id)
    if (kind !== 'claimed') return { kind }
    return isRepeated ? { kind: 'known' } : { kind, createdAt, target }
  })
}

/**
 * Claims a payload that a person sends again, with its audit event. A claim that was removed because nothing was sent, and is
 * made again, has one event.
 */
export async function claimResend(
  db: Db,
  request: DeliveryClaimRequest & { resend: Resend & { by: AuditedBy } },
): Promise<DeliveryClaim> {
  const { id, organizationId, sourceId, resend } = request
  return await inTransaction(db, async (client) => {
    const [claim] = await claimDeliveries({ pool: client }, [request])
    if (!claim) throw new Error('The payload was not claimed')
    if (claim.kind !== 'claimed') return claim
    const { rows } = await client.query<{ name: string | null; isRecorded: boolean }>(
      `SELECT (SELECT name FROM webhook_sources WHERE organization_id = $1 AND id = $2) AS name, (
         SELECT true FROM audit_events
         WHERE organization_id = $1 AND target_id = $3 AND action = 'delivery.resent' LIMIT 1
       ) AS "isRecorded"`,
      [organizationId, sourceId, id],
    )
    if (!rows[0]?.isRecorded) {
      await recordAuditEvent(client, {
        ...resend.by,
        action: 'delivery.resent',
        target: { kind: 'delivery', id, name: rows[0]?.name ?? null },
        changes: [{ field: 'resend_of', old: null, new: resend.of }],
      })
    }
    return claim
  })
}

/**
 * Records a verification request as `in_flight`, with the audit event of a test. Resolves to the time of the record. The
 * organization must exist.
 */
export async function recordVerification(
  db: Db,
  organizationId: string,
  delivery: Omit<NewDelivery, 'runId'>,
  test?: { readonly by: AuditedBy; readonly sourceName: string },
): Promise<Date> {
  return await inTransaction(db, async (client) => {
    const recorded = await client.query<{ createdAt: Date }>(
      `INSERT INTO deliveries (id, organization_id, source_id, kind, outcome, request_body, request_id)
     VALUES ($1, $2, $3, 'verification', 'in_flight', $4, $5) RETURNING created_at AS "createdAt"`,
      [delivery.id, organizationId, delivery.sourceId, delivery.requestBody, delivery.requestId],
    )
    const [row] = recorded.rows
    if (!row) throw new Error('The verification was not recorded')
    if (test) {
      await recordAuditEvent(client, {
        ...test.by,
        action: 'webhook_source.tested',
        target: { kind: 'webhook_source', id: delivery.sourceId, name: test.sourceName },
        changes: [{ field: 'delivery_id', old: null, new: delivery.id }],
      })
    }
    return row.createdAt
  })
}

/** The outcome of one delivery, to record. */
export interface DeliveryOutcomeRecord {
  organizationId: string
  id: string
  result: DeliveryResult
}

const RECORD_OUTCOMES: NamedStatement = {
  name: 'record-delivery-outcomes',
  text: `
    UPDATE deliveries SET outcome = result.outcome, status = result.status, reason = result.reason,
      mismatches = result.mismatches::json, duration_ms = result.duration_ms, answer = result.answer,
      rejected_answer = result.rejected_answer, finished_at = now()
    FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::integer[], $5::text[], $6::text[], $7::integer[], $8::text[], $9::text[])
      AS result (id, organization_id, outcome, status, reason, mismatches, duration_ms, answer, rejected_answer)
    WHERE deliveries.id = result.id AND deliveries.organization_id = result.organization_id
      AND CASE deliveries.outcome
        WHEN 'in_flight' THEN true
        WHEN 'unknown' THEN result.outcome <> 'unknown'
        ELSE false
      END
    RETURNING deliveries.id, deliveries.finished_at AS "finishedAt"`,
}

/**
 * Records the outcomes of any number of deliveries in one statement. Resolves to the time of the record for each, or
 * undefined when nothing was written. Replaces only `in_flight`, and `unknown` when the real outcome arrives late. Of one
 * delivery named twice, the first record counts.
 */
export async function recordOutcomes(
  db: Db,
  records: readonly DeliveryOutcomeRecord[],
): Promise<readonly (Date | undefined)[]> {
  const firsts = new Map(records.toReversed().map((record) => [record.id, record]))
  const distinct = [...firsts.values()]
  const { rows } = await runStatement<{ id: string; finishedAt: Date }>(db, RECORD_OUTCOMES, [
    distinct.map(({ id }) => id),
    distinct.map(({ organizationId }) => organizationId),
    distinct.map(({ result }) => result.outcome),
    distinct.map(({ result }) => result.status),
    distinct.map(({ result }) => result.reason),
    distinct.map(({ result }) => result.mismatches && JSON.stringify(result.mismatches)),
    distinct.map(({ result }) => result.durationMs),
    distinct.map(({ result }) => result.answer),
    distinct.map(({ result }) => result.rejectedAnswer ?? null),
  ])
  const finished = new Map(rows.map((row) => [row.id, row.finishedAt]))
  return records.map((record) => (firsts.get(record.id) === record ? finished.get(record.id) : undefined))
}

/**
 * Removes the record of a request of which no byte was sent, so that its id can be claimed anew. Resolves to whether the
 * record was still in flight; any other is kept. The time of the record distinguishes it from a later claim of the
 * same id, which a repeated call must not remove.
 */
export async function removeUnsentDelivery(
  db: Db,
  { organizationId, id, createdAt }: Pick<Delivery, 'organizationId' | 'id' | 'createdAt'>,
): Promise<boolean> {
  const { rowCount } = await db.pool.query(
    `DELETE FROM deliveries
     WHERE organization_id = $1 AND id = $2 AND created_at = $3 AND outcome = 'in_flight'`,
    [organizationId, id, createdAt],
  )
  return rowCount === 1
}

/** A delivery as it is now. */
export interface DeliveryState {
  delivery: Delivery
  /** The time since it was recorded, by the database's clock. */
  ageMs: number
}

const FIND_DELIVERY_STATE: NamedStatement = {
  name: 'find-delivery-state',
  text: `
    SELECT id, organization_id AS "organizationId", source_id AS "sourceId", kind, outcome, status, reason, mismatches,
      duration_ms AS "durationMs", answer, request_body AS "requestBody", session_id AS "sessionId", run_id AS "runId",
      request_id AS "requestId", created_at AS "createdAt", finished_at AS "finishedAt",
      resend_of AS "resendOf", sent_by AS "sentBy",
      (1000 * extract(epoch FROM clock_timestamp() - created_at))::float8 AS "ageMs"
    FROM deliveries WHERE id = $1`,
}

/**
 * Finds the delivery of this id, of any organization, with its age. The caller compares the organization: `undefined` then
 * means that no delivery has the id any more.
 */
export async function findDeliveryState(db: Db, deliveryId: string): Promise<DeliveryState | undefined> {
  const { rows } = await runStatement<Delivery & { ageMs: number }>(db, FIND_DELIVERY_STATE, [deliveryId])
  const [row] = rows
  if (!row) return undefined
  const { ageMs, ...delivery } = row
  return { delivery, ageMs }
}

/** Which part of a source's log to read. */
export interface DeliveryQuery {
  sourceId: string
  outcome?: DeliveryOutcome
  kind?: DeliveryKind
  /** Recorded at this time or later. */
  since?: Date
  /** Recorded before this time. */
  until?: Date
  limit: number
  /** Continues after this entry, the last one of the page before. */
  after?: { createdAt: Date; id: string }
}

/** The source's log, newest first (contract README, "Deliveries"). */
export async function listDeliveries(db: Db, organizationId: string, query: DeliveryQuery): Promise<Delivery[]> {
  const { sourceId, outcome, kind, since, until, limit, after } = query
  // Optional filters are part of the text, so that PostgreSQL recognizes the partial index that serves each of them. Named: to plan
  // the statement took a third of the time of a page.
  const statement: NamedStatement = {
    name: ['list-deliveries', outcome, kind].filter((part) => part !== undefined).join('-'),
    text: `
      SELECT id, organization_id AS "organizationId", source_id AS "sourceId", kind, outcome, status, reason, mismatches,
        duration_ms AS "durationMs", answer, request_body AS "requestBody", session_id AS "sessionId", run_id AS "runId",
        request_id AS "requestId", created_at AS "createdAt", finished_at AS "finishedAt",
        resend_of AS "resendOf", sent_by AS "sentBy"
      FROM deliveries
      WHERE organization_id = $1 AND source_id = $2
        AND created_at >= $3 AND (created_at, id) < ($4, $5)
        ${outcome ? `AND outcome = ${escapeLiteral(outcome)}` : ''}
        ${kind ? `AND kind = ${escapeLiteral(kind)}` : ''}
      ORDER BY created_at DESC, id DESC LIMIT $6`,
  }
  const { rows } = await runStatement<Delivery>(db, statement, [
    organizationId,
    sourceId,
    since ?? '-infinity',
    ...positionParams(after, until),
    limit,
  ])
  return rows
}

/** What the endpoint answered to each of these deliveries that it rejected, by id. For people: an agent must not read it. */
export async function readRejectedAnswers(
  db: Db,
  organizationId: string,
  deliveryIds: readonly string[],
): Promise<Map<string, string>> {
  const { rows } = await db.pool.query<{ id: string; text: string }>(
    `SELECT id, rejected_answer AS text FROM deliveries
     WHERE organization_id = $1 AND id = ANY ($2::uuid[]) AND rejected_answer IS NOT NULL`,
    [organizationId, deliveryIds],
  )
  return new Map(rows.map(({ id, text }) => [id, text]))
}

/** The reason of an `unknown` delivery. */
export const UNKNOWN_REASON =
  'The service was interrupted while it was sending: the request may have arrived or not. It is not sent again.'

// ARRAY(…) is evaluated once. With IN, PostgreSQL may join the batch to the table and evaluate it again for each row: the
// statement then takes seconds, and writes more rows than a batch.
const MARK_ABANDONED_DELIVERIES: NamedStatement = {
  name: 'mark-abandoned-deliveries',
  text: `
    UPDATE deliveries SET outcome = 'unknown', reason = $1, finished_at = now()
    WHERE id = ANY (ARRAY(
      SELECT id FROM deliveries
      WHERE outcome = 'in_flight' AND created_at < now() - $2 * interval '1 millisecond'
      ORDER BY created_at LIMIT $3 FOR UPDATE SKIP LOCKED
    ))`,
}

/**
 * Records as `unknown` what has been in flight for longer than any exchange takes: its dispatcher died. At most `batchSize`
 * deliveries. Resolves to how many. Safe when several processes do it at once.
 */
export async function markAbandonedDeliveries(
  db: Db,
  options: { olderThanMs: number; batchSize?: number },
): Promise<number> {
  const { olderThanMs, batchSize = 500 } = options
  const { rowCount } = await runStatement(db, MARK_ABANDONED_DELIVERIES, [UNKNOWN_REASON, olderThanMs, batchSize])
  return rowCount ?? 0
}
