import type { Database } from '@workflow-service/database'
import type { RecordedRequest } from '@workflow-service/testkit'
import type { AskedStart } from './load.ts'

/** What the database and the endpoint say of the starts, held against each other. */
export interface Findings {
  /** Broken promises, in words; empty when all was kept. */
  readonly faults: readonly string[]
  readonly accepted: number
  readonly succeeded: number
  /** Runs that failed because a payload's outcome is not known: its dispatcher died while it was sending. */
  readonly outcomeUnknown: number
  readonly payloads: number
  /** Runs that more than one runner had to take up. */
  readonly takenUpAgain: number
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

/** How many runs have not ended. */
export function countUnfinished(db: Database): Promise<number> {
  return db.prisma.start.count({ where: { status: { in: ['queued', 'running'] } } })
}

/** Checks every promise on the record of the endpoint and of the database, once all runs have ended. */
export async function checkRecord(
  db: Database,
  asked: readonly AskedStart[],
  requests: readonly RecordedRequest[],
): Promise<Findings> {
  const runs = (await db.prisma.start.findMany({ orderBy: [{ sessionId: 'asc' }, { number: 'asc' }] })).map(
    (run): EndedRun => ({ ...run, number: Number(run.number) }),
  )
  const accepted = asked.filter((start) => start.accepted !== undefined)
  const payloads = countPayloads(requests)
  return {
    faults: [
      ...checkEveryStartEnded(accepted, runs),
      ...checkEveryPayloadOnce(asked, runs, payloads),
      ...checkRunsDoNotOverlap(runs),
      ...checkOrder(accepted, runs, requests),
      ...(await checkJournals(db)),
    ],
    accepted: accepted.length,
    succeeded: runs.filter(({ status }) => status === 'succeeded').length,
    outcomeUnknown: runs.filter(({ error }) => error?.startsWith('delivery_unknown')).length,
    payloads: requests.length,
    takenUpAgain: runs.filter(({ attempts }) => attempts > 1).length,
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

/** Guarantee 1: what was answered 202 ends as exactly one run that succeeded or failed. */
function checkEveryStartEnded(accepted: readonly AskedStart[], runs: readonly EndedRun[]): string[] {
  const byId = new Map(runs.map((run) => [run.id, run]))
  const faults: string[] = []
  for (const start of accepted) {
    const run = byId.get(start.accepted!.startId)
    if (!run) faults.push(`"${start.text}" was answered 202 and is not there`)
    else if (run.context !== start.text) faults.push(`"${start.text}" was answered with the start of "${run.context}"`)
    else if (run.sessionId !== start.accepted!.sessionId) faults.push(`"${start.text}" runs in another session`)
  }
  for (const run of runs) {
    if (run.status !== 'succeeded' && run.status !== 'failed') faults.push(`"${run.context}" is still ${run.status}`)
  }
  const perText = Map.groupBy(runs, ({ context }) => context)
  for (const [text, same] of perText) if (same.length > 1) faults.push(`"${text}" was started ${same.length} times`)
  return faults
}

/** Guarantee 3: no payload is sent twice; one whose run succeeded has arrived; one that is lost is told as not known. */
function checkEveryPayloadOnce(
  asked: readonly AskedStart[],
  runs: readonly EndedRun[],
  payloads: ReadonlyMap<string, number>,
): string[] {
  const faults: string[] = []
  for (const [key, count] of payloads) if (count > 1) faults.push(`the payload "${key}" was sent ${count} times`)
  const known = new Set(asked.map(({ text }) => text))
  for (const run of runs) {
    if (!known.has(run.context)) faults.push(`nobody asked for "${run.context}"`)
    const arrived = PATHS.filter((path) => payloads.has(payloadKey(path, run.context)))
    if (run.status === 'succeeded' && arrived.length !== PATHS.length) {
      faults.push(`"${run.context}" succeeded, but only ${arrived.join(' and ') || 'nothing'} arrived`)
    }
    if (run.status === 'failed' && !run.error?.startsWith('delivery_unknown')) {
      faults.push(`"${run.context}" failed for no reason that an outage gives: ${run.error}`)
    }
  }
  return faults
}

/** Guarantee 2: runs of one session follow each other, by the database's clock. */
function checkRunsDoNotOverlap(runs: readonly EndedRun[]): string[] {
  const faults: string[] = []
  for (const [index, run] of runs.entries()) {
    const before = runs[index - 1]
    if (before?.sessionId !== run.sessionId) continue
    // Ends are kept in milliseconds, beginnings in microseconds.
    const gapMs = run.startedAt!.getTime() - before.finishedAt!.getTime()
    if (gapMs < -1) faults.push(`"${run.context}" began ${-gapMs} ms before "${before.context}" had ended`)
  }
  return faults
}

/** Guarantee 2: runs of one session come in the order in which their starts were accepted, and so do their payloads. */
function checkOrder(
  accepted: readonly AskedStart[],
  runs: readonly EndedRun[],
  requests: readonly RecordedRequest[],
): string[] {
  const faults: string[] = []
  const numbers = new Map(runs.map((run) => [run.id, run.number]))
  const lastNumber = new Map<string, AskedStart>()
  for (const start of accepted.toSorted((a, b) => a.line - b.line || a.place - b.place)) {
    const { startId, sessionId } = start.accepted!
    const before = lastNumber.get(sessionId)
    if (before && numbers.get(before.accepted!.startId)! >= numbers.get(startId)!) {
      faults.push(`"${start.text}" was accepted after "${before.text}" and has the lower number`)
    }
    lastNumber.set(sessionId, start)
  }
  const byText = new Map(runs.map((run) => [run.context, run]))
  const lastArrived = new Map<string, number>()
  for (const request of requests) {
    const run = byText.get(textOf(request))
    if (!run) continue
    const place = run.number * PATHS.length + PATHS.indexOf(request.path as (typeof PATHS)[number])
    if (place < (lastArrived.get(run.sessionId) ?? 0)) faults.push(`"${run.context}" arrived out of order`)
    lastArrived.set(run.sessionId, place)
  }
  return faults
}

const MOST_STEPS = new Map([
  ['message', 1],
  ['tool_call', PATHS.length],
  ['tool_result', PATHS.length],
])

/** Guarantee 3: a finished step is never done again, so each run planned each of its payloads once. */
async function checkJournals(db: Database): Promise<string[]> {
  const faults: string[] = []
  const steps = await db.prisma.runStep.groupBy({ by: ['runId', 'kind'], _count: true })
  for (const { runId, kind, _count: count } of steps) {
    const expected = MOST_STEPS.get(kind) ?? Infinity
    if (count > expected) faults.push(`run ${runId} has ${count} steps of kind ${kind}`)
  }
  const deliveries = await db.prisma.delivery.groupBy({ by: ['runId'], _count: true })
  for (const { runId, _count: count } of deliveries) {
    if (count > PATHS.length) faults.push(`run ${runId} has ${count} deliveries`)
  }
  return faults
}
