import type { Database } from '@workflow-service/database'
import type { RecordedRequest } from '@workflow-service/testkit'
import type { RequestedStart } from './load.ts'

/** The result of comparing the database's record with the endpoint's. */
export interface Findings {
  /** Broken guarantees; empty when all were kept. */
  readonly violations: readonly string[]
  readonly accepted: number
  readonly succeeded: number
  /** Runs that failed because a dispatcher died while it sent a payload, so that the outcome is unknown. */
  readonly outcomeUnknown: number
  readonly payloads: number
  /** Runs that had more than one attempt. */
  readonly retried: number
}

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

/** The number of runs that have not ended. */
export function countUnfinished(db: Database): Promise<number> {
  return db.prisma.start.count({ where: { status: { in: ['queued', 'running'] } } })
}

/** Checks the guarantees against the records of the endpoint and of the database. Call it when all runs have ended. */
export async function checkRecord(
  db: Database,
  requested: readonly RequestedStart[],
  requests: readonly RecordedRequest[],
): Promise<Findings> {
  const runs = (await db.prisma.start.findMany({ orderBy: [{ sessionId: 'asc' }, { number: 'asc' }] })).map(
    (run): EndedRun => ({ ...run, number: Number(run.number) }),
  )
  const accepted = requested.filter((start) => start.accepted !== undefined)
  const payloads = countPayloads(requests)
  return {
    violations: [
      ...checkEveryStartEnded(accepted, runs),
      ...checkEveryPayloadOnce(requested, runs, payloads),
      ...checkRunsDoNotOverlap(runs),
      ...checkOrder(accepted, runs, requests),
      ...(await checkJournals(db)),
    ],
    accepted: accepted.length,
    succeeded: runs.filter(({ status }) => status === 'succeeded').length,
    outcomeUnknown: runs.filter(({ error }) => error?.startsWith('delivery_unknown')).length,
    payloads: requests.length,
    retried: runs.filter(({ attempts }) => attempts > 1).length,
  }
}

const PATHS = ['/orders', '/audit'] as const
const payloadKey = (path: string, text: string) => `${path} ${text}`

function textOf(request: RecordedRequest): string {
  return (request.json as { message: string }).message
}

function countPayloads(requests: readonly RecordedRequest[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const request of requests) {
    const key = payloadKey(request.path, textOf(request))
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  return counts
}

/** Guarantee 1: a start that was answered 202 becomes exactly one run, which succeeds or fails. */
function checkEveryStartEnded(accepted: readonly RequestedStart[], runs: readonly EndedRun[]): string[] {
  const byId = new Map(runs.map((run) => [run.id, run]))
  const violations: string[] = []
  for (const start of accepted) {
    const run = byId.get(start.accepted!.startId)
    if (!run) violations.push(`"${start.text}" was answered 202 and has no run`)
    else if (run.context !== start.text) violations.push(`"${start.text}" was answered with the id of "${run.context}"`)
    else if (run.sessionId !== start.accepted!.sessionId) violations.push(`"${start.text}" runs in another session`)
  }
  for (const run of runs) {
    if (run.status !== 'succeeded' && run.status !== 'failed')
      violations.push(`"${run.context}" is still ${run.status}`)
  }
  const perText = Map.groupBy(runs, ({ context }) => context)
  for (const [text, same] of perText) if (same.length > 1) violations.push(`"${text}" was started ${same.length} times`)
  return violations
}

/** Guarantee 3: no payload is sent twice, a succeeded run's payloads have arrived, and a lost payload is reported as unknown. */
function checkEveryPayloadOnce(
  requested: readonly RequestedStart[],
  runs: readonly EndedRun[],
  payloads: ReadonlyMap<string, number>,
): string[] {
  const violations: string[] = []
  for (const [key, count] of payloads) if (count > 1) violations.push(`the payload "${key}" was sent ${count} times`)
  const known = new Set(requested.map(({ text }) => text))
  for (const run of runs) {
    if (!known.has(run.context)) violations.push(`"${run.context}" was not requested`)
    const arrived = PATHS.filter((path) => payloads.has(payloadKey(path, run.context)))
    if (run.status === 'succeeded' && arrived.length !== PATHS.length) {
      violations.push(`"${run.context}" succeeded, but only ${arrived.join(' and ') || 'nothing'} arrived`)
    }
    if (run.status === 'failed' && !run.error?.startsWith('delivery_unknown')) {
      violations.push(`"${run.context}" failed for a reason that no outage explains: ${run.error}`)
    }
  }
  return violations
}

/** Guarantee 2: runs of one session follow each other, by the database's clock. */
function checkRunsDoNotOverlap(runs: readonly EndedRun[]): string[] {
  const violations: string[] = []
  for (const [index, run] of runs.entries()) {
    const before = runs[index - 1]
    if (before?.sessionId !== run.sessionId) continue
    // The end is stored in milliseconds, the start in microseconds.
    const gapMs = run.startedAt!.getTime() - before.finishedAt!.getTime()
    if (gapMs < -1) violations.push(`"${run.context}" started ${-gapMs} ms before "${before.context}" ended`)
  }
  return violations
}

/** Guarantee 2: runs of one session, and their payloads, come in the order in which their starts were accepted. */
function checkOrder(
  accepted: readonly RequestedStart[],
  runs: readonly EndedRun[],
  requests: readonly RecordedRequest[],
): string[] {
  const violations: string[] = []
  const numbers = new Map(runs.map((run) => [run.id, run.number]))
  const lastNumber = new Map<string, RequestedStart>()
  for (const start of accepted.toSorted((a, b) => a.caller - b.caller || a.sequence - b.sequence)) {
    const { startId, sessionId } = start.accepted!
    const before = lastNumber.get(sessionId)
    if (before && numbers.get(before.accepted!.startId)! >= numbers.get(startId)!) {
      violations.push(`"${start.text}" was accepted after "${before.text}" and has the lower number`)
    }
    lastNumber.set(sessionId, start)
  }
  const byText = new Map(runs.map((run) => [run.context, run]))
  const lastArrived = new Map<string, number>()
  for (const request of requests) {
    const run = byText.get(textOf(request))
    if (!run) continue
    const position = run.number * PATHS.length + PATHS.indexOf(request.path as (typeof PATHS)[number])
    if (position < (lastArrived.get(run.sessionId) ?? 0)) violations.push(`"${run.context}" arrived out of order`)
    lastArrived.set(run.sessionId, position)
  }
  return violations
}

const MAX_STEPS_PER_RUN = new Map([
  ['message', 1],
  ['tool_call', PATHS.length],
  ['tool_result', PATHS.length],
])

/** Guarantee 3: a finished step is never repeated, so each run planned each of its payloads once. */
async function checkJournals(db: Database): Promise<string[]> {
  const violations: string[] = []
  const steps = await db.prisma.runStep.groupBy({ by: ['runId', 'kind'], _count: true })
  for (const { runId, kind, _count: count } of steps) {
    const maxSteps = MAX_STEPS_PER_RUN.get(kind) ?? Infinity
    if (count > maxSteps) violations.push(`run ${runId} has ${count} steps of kind ${kind}`)
  }
  const deliveries = await db.prisma.delivery.groupBy({ by: ['runId'], _count: true })
  for (const { runId, _count: count } of deliveries) {
    if (count > PATHS.length) violations.push(`run ${runId} has ${count} deliveries`)
  }
  return violations
}
