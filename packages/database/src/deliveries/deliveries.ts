import type { DeliveryKind, DeliveryOut, DeliveryOutcome, FieldError } from '@workflow-service/contract'
import type { PoolClient } from 'pg'
import {
  column,
  type Connection,
  datesToIso,
  type Db,
  inTransaction,
  insertMissing,
  listsOf,
  type RowOfColumns,
  type RowOfStatement,
  runStatement,
  sql,
  statement,
} from '../connection/index.ts'
import { type AuditedBy, isDeliveryVisible, recordAuditEvent } from '../organizations/index.ts'
import { toStepRows } from './step-rows.ts'

/** A delivery to record as `in_flight` before the first byte is sent. */
export interface NewDelivery {
  id: string
  sourceId: string
  /** JSON text without the signing secret. */
  requestBody: string
  runId: string | null
  requestId: string
}

/** A runner's lease of a session. Each acquisition increments the session's epoch, so an epoch has one owner. */
export interface Lease {
  readonly sessionId: string
  readonly epoch: number
}

const TARGET_COLUMNS = {
  endpointUrl: column.text(),
  /** Encrypted; null when the source has none. */
  signingSecret: column.bytea.orNull,
  exampleRequestBody: column.json<Record<string, unknown>>(),
  /** Incremented by every save of the source. */
  version: column.integer,
  /**
   * Whether the payload is approved and, once it is accepted, the source needs no further approval: see
   * `endFirstApproval`.
   */
  isFirstApproval: column.boolean,
}

/** What the dispatcher needs of the source to send a payload. */
export type DeliveryTarget = RowOfColumns<typeof TARGET_COLUMNS>

export interface ClaimedDelivery {
  kind: 'claimed'
  target: DeliveryTarget
  createdAt: Date
  /** How often the payload is sent, with this time. */
  attempt: number
}

/** Whether the payload may be sent: only `claimed`, and only by the caller that got it. */
export type DeliveryClaim =
  | ClaimedDelivery
  /** The id was recorded before, for any organization. */
  | { kind: 'known' }
  | { kind: 'no_source' }
  /** What is sent again was deleted meanwhile, or hidden from the member who sends it. */
  | { kind: 'earlier_deleted' }
  | { kind: 'lease_lost' }
  | { kind: 'organization_suspended' }
  /** The source is paused; an approval that it asks for is given. */
  | { kind: 'source_paused' }
  /** The source's payloads need an approval, and this one has none; or a person who may not approve sends it again. */
  | { kind: 'approval_required' }

/** The outcome of a request. */
export interface DeliveryResult extends Pick<
  DeliveryOut,
  'status' | 'reason' | 'mismatches' | 'duration_ms' | 'answer'
> {
  outcome: Exclude<DeliveryOutcome, 'in_flight'>
  /** The beginning of a rejected answer's body, for people: the runner's answer is made of `DeliveryOut`. */
  rejected_answer?: string | null
  /** What people may see of the headers of the answer. */
  answer_headers?: Record<string, string> | null
}

/** What a claim and an outcome write into the journal of a run. */
export interface DeliveryJournal {
  runId: string
  lease: Lease
  /** Where the first of the steps is written, and the result after the last. */
  position: number
  steps: readonly { readonly kind: string; readonly data: string }[]
  /** The number of the run in its session if it succeeds with an accepted payload. */
  lastOfRun: number | null
}

/** A payload to claim. `lease` is null when no runner sends it. */
export interface DeliveryClaimRequest extends NewDelivery {
  organizationId: string
  lease: Lease | null
  /** Null: the steps are in the journal already, or there is none. */
  journal?: DeliveryJournal | null
  /** Null for a new payload. */
  resend: Resend | null
}

/** What a delivery that repeats an earlier one takes over from it. */
export interface Resend {
  of: string
  /** The first delivery of the payload. */
  firstId: string
  sentBy: string | null
  sessionId: string | null
  /** For the audit event; undefined: there is none. */
  by?: AuditedBy | undefined
}

/** Whether the webhook source `source` asks for an approval of a payload that is sent now. */
export const NEEDS_APPROVAL = `(source.approval = 'always' OR (source.approval = 'first' AND source.approved_at IS NULL))`

const CLAIM_DELIVERIES = statement(
  'deliveries/claim-deliveries',
  {
    id: column.uuid,
    kind: column.text<DeliveryClaim['kind']>(),
    createdAt: column.timestamptz,
    ...TARGET_COLUMNS,
  },
  { NEEDS_APPROVAL },
)

/**
 * Records payloads as `in_flight`, any number in one statement. Checks the source of each and, when a run sends it,
 * that the lease is the session's current one. Claims nothing for a suspended organization, nor a payload without the
 * approval that its source asks for. Of all calls with one id, at most one gets `claimed`, unless its record was
 * removed (`removeUnsentDelivery`); the steps of its journal are written with it. The ids must differ: a dispatcher
 * runs the calls for one id one after the other.
 */
export async function claimDeliveries(
  db: Connection,
  requests: readonly DeliveryClaimRequest[],
  answerWithinMs?: number,
): Promise<readonly DeliveryClaim[]> {
  return await insertMissing(() => claimOnce(db, requests, answerWithinMs))
}

async function claimOnce(
  db: Connection,
  requests: readonly DeliveryClaimRequest[],
  answerWithinMs?: number,
): Promise<readonly DeliveryClaim[]> {
  const steps = requests.flatMap(({ id, journal }) =>
    journal ? toStepRows(journal.position, journal.steps).map((step) => ({ id, ...step })) : [],
  )
  const values = [
    ...listsOf(requests, 'id', 'organizationId', 'sourceId', 'requestBody', 'runId', 'requestId'),
    requests.map(({ lease, resend }) => (lease ?? resend)?.sessionId ?? null),
    requests.map(({ lease }) => lease?.epoch ?? null),
    requests.map(({ resend }) => resend?.of ?? null),
    requests.map(({ resend }) => resend?.sentBy ?? null),
    requests.map(({ journal }) => Boolean(journal)),
    ...listsOf(steps, 'id', 'position', 'kind', 'data', 'earlierSteps'),
  ]
  const { rows } = await runStatement(db, CLAIM_DELIVERIES, values, answerWithinMs)
  return rows.map(({ id: _id, kind, createdAt, ...target }) =>
    kind === 'claimed' ? { kind, createdAt, target, attempt: 1 } : { kind },
  )
}

/** Finds the delivery $1 of an earlier call, or else what it repeats, $2, unless the sender $4 does not see that. */
const FIND_REPEATED = `
  SELECT FROM deliveries AS delivery WHERE id = $1 OR id = $2 AND (
    SELECT role = 'member' AND NOT coalesce(${isDeliveryVisible('users.id')}, false) FROM users
    WHERE users.organization_id = $3 AND users.id = $4
  ) IS NOT TRUE`

/**
 * Claims a payload that is sent again, after others of the same payload that are claimed at the same time, so that each
 * has the next number; with its audit event if a person sends it. A claim that was removed because nothing was sent,
 * and is made again, has one event.
 */
export async function claimResend(db: Db, request: DeliveryClaimRequest & { resend: Resend }): Promise<DeliveryClaim> {
  const { id, organizationId, sourceId, resend } = request
  const claimInTransaction = async (client: PoolClient): Promise<DeliveryClaim> => {
    await client.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`resends of ${resend.firstId}`])
    // `deleteRun` locks the run, too, before it deletes the run's deliveries: either it deletes this one with them, or
    // the earlier one is gone here.
    await client.query('SELECT FROM starts WHERE id = $1 FOR KEY SHARE', [request.runId])
    const left = await client.query(FIND_REPEATED, [id, resend.of, organizationId, resend.sentBy])
    if (left.rowCount === 0) return { kind: 'earlier_deleted' }
    const timesSent = await countTimesSent({ pool: client }, resend.firstId)
    const [made] = await claimOnce({ pool: client }, [request])
    if (made!.kind !== 'claimed') return made!
    const claim = { ...made!, attempt: timesSent + 1 }
    if (!resend.by) return claim
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
  }
  return await insertMissing(() => inTransaction(db, claimInTransaction))
}

/**
 * Records a verification request as `in_flight`, with the audit event of a test. Resolves to the time of the record.
 * The organization must exist.
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
    if (test) {
      await recordAuditEvent(client, {
        ...test.by,
        action: 'webhook_source.tested',
        target: { kind: 'webhook_source', id: delivery.sourceId, name: test.sourceName },
        changes: [{ field: 'delivery_id', old: null, new: delivery.id }],
      })
    }
    return recorded.rows[0]!.createdAt
  })
}

export interface DeliveryOutcomeRecord {
  organizationId: string
  id: string
  result: DeliveryResult
}

const SET_OUTCOME = sql('deliveries/set-outcome')

const RECORD_OUTCOMES = statement(
  'deliveries/record-delivery-outcomes',
  {
    id: column.uuid,
    finishedAt: column.timestamptz,
    isResend: column.boolean,
  },
  { SET_OUTCOME },
)
const HANDLE_RESENT = statement('deliveries/handle-resent', {})

/**
 * Records the outcomes of any number of different deliveries in one statement. Resolves to the time of the record for
 * each, or undefined when nothing was written. Replaces only `in_flight`, and `unknown` when the real outcome arrives
 * late. What a resend repeats needs no attention any more.
 */
export async function recordOutcomes(
  db: Db,
  records: readonly DeliveryOutcomeRecord[],
): Promise<readonly (Date | undefined)[]> {
  const { rows } = await runStatement(db, RECORD_OUTCOMES, outcomeColumns(records))
  const written = new Map(rows.map((row) => [row.id, row]))
  // Also for an outcome that was written before: an earlier call may have failed after that.
  const resends = records.filter(({ id }) => written.get(id)?.isResend !== false)
  if (resends.length > 0) await runStatement(db, HANDLE_RESENT, [resends.map(({ id }) => id)])
  return records.map(({ id }) => written.get(id)?.finishedAt)
}

function outcomeColumns(records: readonly DeliveryOutcomeRecord[]): unknown[][] {
  const results = records.map(({ result }) => result)
  return [
    ...listsOf(records, 'id', 'organizationId'),
    ...listsOf(results, 'outcome', 'status', 'reason', 'duration_ms', 'answer', 'rejected_answer'),
    results.map(({ mismatches }) => mismatches && JSON.stringify(mismatches)),
    results.map(({ answer_headers: headers }) => headers && JSON.stringify(headers)),
  ]
}

const WAKE_AFTER_CANCELLED = statement('deliveries/wake-after-cancelled', {})

/**
 * Removes the record of a request of which no byte was sent, so that its id can be claimed anew. Resolves to whether
 * the record was still in flight; any other is kept. The time of the record distinguishes it from a later claim of the
 * same id, which a repeated call must not remove. A session that waits for it, because its run was cancelled, goes on.
 */
export async function removeUnsentDelivery(
  db: Db,
  delivery: Pick<DeliveryOut, 'organization_id' | 'id' | 'created_at'>,
): Promise<boolean> {
  return await inTransaction(db, async (client) => {
    // First, as where a run is cancelled: that reads what is in flight afterwards, or has made the session wait. No
    // session waits for a payload that a person sends again.
    const { rows } = await client.query<{ id: string; isLeased: boolean }>(
      `SELECT id, lease_owner IS NOT NULL AS "isLeased" FROM sessions
       WHERE id = (SELECT session_id FROM deliveries WHERE organization_id = $1 AND id = $2 AND resend_of IS NULL)
       FOR NO KEY UPDATE`,
      [delivery.organization_id, delivery.id],
    )
    const [session] = rows
    const { rowCount } = await client.query(
      `DELETE FROM deliveries
       WHERE organization_id = $1 AND id = $2 AND created_at = $3 AND outcome = 'in_flight'`,
      [delivery.organization_id, delivery.id, delivery.created_at],
    )
    const isRemoved = rowCount === 1
    if (isRemoved && session?.isLeased === false) {
      await runStatement({ pool: client }, WAKE_AFTER_CANCELLED, [[session.id]])
    }
    return isRemoved
  })
}

/** The outcome of a delivery, with the step that records it in the journal of its run. */
export interface RunOutcomeRecord extends DeliveryOutcomeRecord {
  /** `result` is the data of its step as JSON text. */
  journal: DeliveryJournal & { result: string }
}

const RECORD_RUN_OUTCOMES = statement(
  'deliveries/record-run-outcomes',
  {
    id: column.uuid,
    finishedAt: column.timestamptz,
    /** Whether the step of the result was written. */
    isWritten: column.boolean,
    /** Whether the run was ended. */
    isEnded: column.boolean,
  },
  { SET_OUTCOME },
)

/**
 * Records outcomes as `recordOutcomes` does, each with its result in the journal of the run and, where an accepted
 * payload was all that was left to do and the session has no further start, the end of the run and the release of the
 * session. The journal and the run change only under the current lease.
 */
export async function recordRunOutcomes(
  db: Db,
  records: readonly RunOutcomeRecord[],
): Promise<readonly (Omit<RowOfStatement<typeof RECORD_RUN_OUTCOMES>, 'id'> | undefined)[]> {
  const journals = records.map(({ journal }) => ({ ...journal.lease, ...journal }))
  const values = [
    ...outcomeColumns(records),
    ...listsOf(journals, 'sessionId', 'epoch', 'runId', 'result'),
    journals.map(({ position, steps }) => position + steps.length),
    records.map(({ journal, result }) => (result.outcome === 'accepted' ? journal.lastOfRun : null)),
  ]
  const { rows } = await insertMissing(() => runStatement(db, RECORD_RUN_OUTCOMES, values))
  const recorded = new Map(rows.map(({ id, ...row }) => [id, row]))
  const refused = records.filter(({ id }) => recorded.get(id)?.isWritten === false)
  if (refused.length > 0) {
    await runStatement(db, WAKE_AFTER_CANCELLED, [refused.map(({ journal }) => journal.lease.sessionId)])
  }
  return records.map(({ id }) => recorded.get(id))
}

/** The columns of a `DeliveryOut`. */
export const DELIVERY_COLUMNS = {
  id: column.uuid,
  organization_id: column.uuid,
  source_id: column.uuid,
  kind: column.text<DeliveryKind>(),
  outcome: column.text<DeliveryOutcome>(),
  status: column.integer.orNull,
  reason: column.text().orNull,
  mismatches: column.json<FieldError[]>().orNull,
  duration_ms: column.integer.orNull,
  answer: column.text().orNull,
  request_body: column.json<Record<string, unknown>>(),
  session_id: column.uuid.orNull,
  run_id: column.uuid.orNull,
  request_id: column.text().orNull,
  created_at: column.timestamptz,
  finished_at: column.timestamptz.orNull,
  resend_of: column.uuid.orNull,
  sent_by: column.uuid.orNull,
}

const FIND_DELIVERY_STATE = statement('deliveries/find-delivery-state', { ...DELIVERY_COLUMNS, ageMs: column.float8 })

/**
 * Finds the delivery of this id, of any organization, with its age by the database's clock. The caller compares the
 * organization: `undefined` then means that no delivery has the id any more.
 */
export async function findDeliveryState(
  db: Db,
  deliveryId: string,
): Promise<{ delivery: DeliveryOut; ageMs: number } | undefined> {
  const { rows } = await runStatement(db, FIND_DELIVERY_STATE, [deliveryId])
  const [row] = rows
  if (!row) return undefined
  const { ageMs, ...delivery } = row
  return { delivery: datesToIso<DeliveryOut>(delivery), ageMs }
}

/** The deliveries of one payload that are read. */
const MAX_TIMES_SENT = 1_000

/**
 * Finds the first delivery of the payload of a delivery: itself, if it is no resend. Of earlier ones that the retention
 * has deleted, the id of the latest is left.
 */
export async function findFirstSent(db: Db, deliveryId: string): Promise<string> {
  const { rows } = await db.pool.query<{ id: string }>(
    `WITH RECURSIVE earlier AS (
       SELECT $1::uuid AS id, 0 AS depth
       UNION ALL
       SELECT deliveries.resend_of, depth + 1 FROM earlier JOIN deliveries ON deliveries.id = earlier.id
       WHERE deliveries.resend_of IS NOT NULL AND depth < ${MAX_TIMES_SENT}
     )
     SELECT id FROM earlier ORDER BY depth DESC LIMIT 1`,
    [deliveryId],
  )
  return rows[0]!.id
}

/**
 * Counts how often the payload of a first delivery was sent so far, by at most 1,000 deliveries, that one included.
 * LATERAL with LIMIT reads the index: a join may compare each with each.
 */
async function countTimesSent(db: Connection, firstId: string): Promise<number> {
  const { rows } = await db.pool.query<{ count: number }>(
    `WITH RECURSIVE sent AS (
       SELECT $1::uuid AS id
       UNION ALL
       SELECT resend.id FROM sent CROSS JOIN LATERAL (
         SELECT id FROM deliveries WHERE resend_of = sent.id ORDER BY created_at, id LIMIT ${MAX_TIMES_SENT}
       ) AS resend
     )
     SELECT count(*) FILTER (WHERE
       (SELECT outcome IN ('refused', 'invalid') FROM deliveries WHERE deliveries.id = read.id) IS NOT TRUE
     )::int AS count
     FROM (SELECT id FROM sent LIMIT ${MAX_TIMES_SENT}) AS read`,
    [firstId],
  )
  return rows[0]!.count
}

/** The reason of an `unknown` delivery. */
export const UNKNOWN_REASON =
  'The service was interrupted while it was sending: the request may have arrived or not. It is not sent again.'

const MARK_ABANDONED_DELIVERIES = statement('deliveries/mark-abandoned-deliveries', {})

/**
 * Records as `unknown` what has been in flight for longer than any exchange takes: its dispatcher died. At most
 * `batchSize` deliveries. Resolves to how many. Safe when several processes do it at once.
 */
export async function markAbandonedDeliveries(db: Db, options: { olderThanMs: number; batchSize?: number }) {
  const { olderThanMs, batchSize = 500 } = options
  const { rowCount } = await runStatement(db, MARK_ABANDONED_DELIVERIES, [UNKNOWN_REASON, olderThanMs, batchSize])
  return rowCount ?? 0
}
