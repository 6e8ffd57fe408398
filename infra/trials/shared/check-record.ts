import type { Pool } from 'pg'
import type { Arrival } from './receiver.ts'
import { checkRows } from './row-rules.ts'

/** Precedes the text in the context of a start: the payload's field. */
export const FIELD = 'text: '

/** A start that a caller requested. Its text is unique, so that each payload can be traced to its start. */
export interface RequestedStart {
  readonly text: string
  /**
   * The ids of the 202 response, and when it was requested and answered, in ms since 1970. Undefined without a 202:
   * then the start may or may not have been accepted.
   */
  accepted:
    | {
        readonly startId: string
        readonly sessionId: string
        readonly requestedAt: number
        readonly answeredAt: number
      }
    | undefined
}

/** What an organization's callers requested, what its endpoint got, and what each run should have sent. */
export interface RecordToCheck {
  readonly organizationId: string
  /** Those of one session are in their order. */
  readonly requested: readonly RequestedStart[]
  readonly arrivals: readonly Pick<Arrival, 'path' | 'text'>[]
  /** The paths to which each run posts, one after the other. */
  readonly paths: readonly string[]
  /** Whether a run may have failed with this error; `delivery_unknown` always may. */
  readonly mayFailWith?: ((error: string) => boolean) | undefined
}

/** The result of comparing the database's record with the endpoint's. */
export type Findings = Awaited<ReturnType<typeof checkRecord>>

interface EndedRun {
  readonly id: string
  readonly sessionId: string
  readonly number: number
  readonly status: string
  readonly error: string | null
  readonly attempts: number
  readonly startedAt: Date | null
  readonly finishedAt: Date | null
  readonly context: string
}

/** Checks the guarantees against the records of the endpoint and of the database. Call it when all runs have ended. */
export async function checkRecord(pool: Pool, record: RecordToCheck) {
  const { rows: runs } = await pool.query<EndedRun>(
    `SELECT id, session_id AS "sessionId", number::int AS number, status, error, attempts, started_at AS "startedAt",
       finished_at AS "finishedAt", substr(context, ${FIELD.length + 1}) AS context
     FROM starts WHERE organization_id = $1 ORDER BY session_id, number`,
    [record.organizationId],
  )
  const accepted = record.requested.filter((start) => start.accepted !== undefined)
  return {
    /** Broken guarantees; empty when all were kept. */
    violations: [
      ...checkEveryStartEnded(accepted, runs),
      ...checkEveryPayloadOnce(record, runs),
      ...checkRunsDoNotOverlap(runs),
      ...checkOrder(accepted, runs, record),
      ...(await checkJournals(pool, record)),
      ...(await checkRows(pool)),
    ],
    accepted: accepted.length,
    succeeded: runs.filter(({ status }) => status === 'succeeded').length,
    /** Runs that failed because a dispatcher died while it sent a payload, so that the outcome is unknown. */
    outcomeUnknown: runs.filter(({ error }) => error?.startsWith('delivery_unknown')).length,
    payloads: record.arrivals.length,
    /** Runs that had more than one attempt. */
    retried: runs.filter(({ attempts }) => attempts > 1).length,
  }
}

const payloadKey = (path: string, text: string) => `${path} ${text}`

/** Guarantee 1: a start that was answered 202 becomes exactly one run, which succeeds or fails. */
function* checkEveryStartEnded(accepted: readonly RequestedStart[], runs: readonly EndedRun[]): Generator<string> {
  const byId = new Map(runs.map((run) => [run.id, run]))
  for (const start of accepted) {
    const run = byId.get(start.accepted!.startId)
    if (!run) yield `"${start.text}" was answered 202 and has no run`
    else if (run.context !== start.text) yield `"${start.text}" was answered with the id of "${run.context}"`
    else if (run.sessionId !== start.accepted!.sessionId) yield `"${start.text}" runs in another session`
  }
  for (const run of runs) {
    if (run.status !== 'succeeded' && run.status !== 'failed') yield `"${run.context}" is still ${run.status}`
  }
  const perText = Map.groupBy(runs, ({ context }) => context)
  for (const [text, same] of perText) if (same.length > 1) yield `"${text}" was started ${same.length} times`
}

/**
 * Guarantee 3: no payload is sent twice, a succeeded run's payloads have arrived, and a lost payload is reported as
 * unknown.
 */
function* checkEveryPayloadOnce(record: RecordToCheck, runs: readonly EndedRun[]): Generator<string> {
  const { requested, arrivals, paths, mayFailWith = () => false } = record
  const payloads = Map.groupBy(arrivals, ({ path, text }) => payloadKey(path, text))
  for (const [key, { length }] of payloads) if (length > 1) yield `the payload "${key}" was sent ${length} times`
  const known = new Set(requested.map(({ text }) => text))
  for (const run of runs) {
    if (!known.has(run.context)) yield `"${run.context}" was not requested`
    const arrived = paths.filter((path) => payloads.has(payloadKey(path, run.context)))
    if (run.status === 'succeeded' && arrived.length !== paths.length) {
      yield `"${run.context}" succeeded, but only ${arrived.join(' and ') || 'nothing'} arrived`
    }
    const error = run.error ?? ''
    if (run.status === 'failed' && !error.startsWith('delivery_unknown') && !mayFailWith(error)) {
      yield `"${run.context}" failed for a reason that no outage explains: ${error}`
    }
  }
}

/** Guarantee 2: runs of one session follow each other, by the database's clock. */
function* checkRunsDoNotOverlap(runs: readonly EndedRun[]): Generator<string> {
  for (const [index, run] of runs.entries()) {
    const before = runs[index - 1]
    // A run that a restore ended may never have started.
    if (before?.sessionId !== run.sessionId || !run.startedAt) continue
    // The end is stored in milliseconds, the start in microseconds.
    const gapMs = run.startedAt.getTime() - before.finishedAt!.getTime()
    if (gapMs < -1) yield `"${run.context}" started ${-gapMs} ms before "${before.context}" ended`
  }
}

/** Guarantee 2: runs of one session, and their payloads, come in the order in which their starts were accepted. */
function* checkOrder(
  accepted: readonly RequestedStart[],
  runs: readonly EndedRun[],
  { arrivals, paths }: RecordToCheck,
): Generator<string> {
  const numbers = new Map(runs.map((run) => [run.id, run.number]))
  const lastNumber = new Map<string, RequestedStart>()
  for (const start of accepted) {
    const { startId, sessionId } = start.accepted!
    const before = lastNumber.get(sessionId)
    if (before && numbers.get(before.accepted!.startId)! >= numbers.get(startId)!) {
      yield `"${start.text}" was accepted after "${before.text}" and has the lower number`
    }
    lastNumber.set(sessionId, start)
  }
  const byText = new Map(runs.map((run) => [run.context, run]))
  const lastArrived = new Map<string, number>()
  for (const { path, text } of arrivals) {
    const run = byText.get(text)
    if (!run) continue
    const position = run.number * paths.length + paths.indexOf(path)
    if (position < (lastArrived.get(run.sessionId) ?? 0)) yield `"${run.context}" arrived out of order`
    lastArrived.set(run.sessionId, position)
  }
}

/** Guarantee 3: a finished step is never repeated, so each run planned and sent each of its payloads once. */
async function checkJournals(pool: Pool, { organizationId, paths }: RecordToCheck): Promise<string[]> {
  const { rows } = await pool.query<{ runId: string; kind: string; count: number }>(
    `SELECT run_id AS "runId", kind, count(*)::int AS count
     FROM (
       SELECT run_id, kind FROM run_steps
       UNION ALL
       SELECT run_id, earlier ->> 'kind' FROM run_steps, json_array_elements(earlier_steps) AS earlier
       UNION ALL
       SELECT run_id, 'delivery' FROM deliveries WHERE kind = 'payload'
     ) AS step JOIN starts ON starts.id = run_id
     WHERE organization_id = $1 AND kind IN ('message', 'tool_call', 'tool_result', 'delivery')
     GROUP BY run_id, kind HAVING count(*) > CASE kind WHEN 'message' THEN 1 ELSE $2::int END`,
    [organizationId, paths.length],
  )
  return rows.map(({ runId, kind, count }) => `run ${runId} has ${count} of: ${kind}`)
}
