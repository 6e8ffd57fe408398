import { setTimeout as sleep } from 'node:timers/promises'
import { PAYLOAD_DEADLINE_MS } from '@workflow-service/contract/limits'
import {
  type DeliveryLogQuery,
  findWebhookSource,
  listDeliveries,
  type LoggedDelivery,
  readClock,
} from '@workflow-service/database'
import type { OperatorContext, OrganizationContext } from '../cli-context.ts'
import { CliError } from '../cli-error.ts'
import { findSource, openOrganization } from './find.ts'

const POLL_MS = 1_000
/** How far each poll reads back before the newest entry, because transactions commit out of order. */
const OVERLAP_MS = 5_000
/** How far the first read goes back, to what is still under way beside entries that have ended. */
const FIRST_OVERLAP_MS = PAYLOAD_DEADLINE_MS + OVERLAP_MS
const PAGE_SIZE = 100

/**
 * Yields, every second until the signal, the entries of a log that finished since, oldest first and each one once. A
 * poll reads from the oldest unfinished entry, and at least `OVERLAP_MS` back from the newest one. It reads every
 * outcome, because what is under way may get that of the query.
 * @param newest The newest entries, newest first, of which those that are finished were shown already.
 */
export async function* followDeliveries(
  ctx: OrganizationContext,
  query: DeliveryLogQuery,
  newest: readonly LoggedDelivery[],
  signal: AbortSignal,
): AsyncGenerator<readonly LoggedDelivery[]> {
  const { outcome: wanted, ...unfiltered } = query
  // The newest entry with an outcome may be so old that a read from there would not end.
  const isRecent = newest[0] !== undefined && wanted === undefined
  let newestMs = isRecent ? timeOf(newest[0]!) : (await readClock(ctx.db.pool)).getTime()
  const read = async (sinceMs: number) => {
    const since = new Date(Math.max(sinceMs, query.since?.getTime() ?? 0))
    return await readAll(ctx, { ...unfiltered, since })
  }
  let found: readonly LoggedDelivery[] = await read(newestMs - FIRST_OVERLAP_MS)
  // What is above the newest entry, or has finished, since `newest` was read is news.
  const listed = new Set(newest.map(({ id }) => id))
  const firstOld = found.findIndex(({ id }) => id === newest[0]?.id)
  const older = firstOld < 0 ? [] : found.slice(firstOld).filter(({ id }) => !listed.has(id))
  let seen = new Set([...newest, ...older].filter(isFinished).map(({ id }) => id))
  while (!signal.aborted) {
    await sleep(POLL_MS, undefined, { signal }).catch(() => {})
    const unfinishedMs = found.filter((delivery) => !isFinished(delivery)).map(timeOf)
    found = await read(Math.min(newestMs - OVERLAP_MS, ...unfinishedMs))
    const finished = found.filter(isFinished)
    const before = seen
    seen = new Set(finished.map(({ id }) => id))
    newestMs = Math.max(newestMs, ...found.map(timeOf))
    const news = finished.filter(({ id, outcome }) => !before.has(id) && (wanted ?? outcome) === outcome)
    yield news.toReversed()
  }
}

/** Reads all pages of the query, newest first. */
async function readAll({ db, organization }: OrganizationContext, query: DeliveryLogQuery): Promise<LoggedDelivery[]> {
  const all: LoggedDelivery[] = []
  let after: DeliveryLogQuery['after']
  do {
    const page = await listDeliveries(db, organization.id, { ...query, limit: PAGE_SIZE, after })
    all.push(...page.rows)
    after = page.next
  } while (after)
  return all
}

function timeOf({ created_at: createdAt }: LoggedDelivery): number {
  return Date.parse(createdAt)
}

export function isFinished({ outcome }: LoggedDelivery): boolean {
  return outcome !== 'in_flight'
}

/** Opens the payloads of a webhook source for `wf listen`. @throws CliError if there is no such source. */
export async function openForwarding(operator: OperatorContext, given: string, organizationName: string | undefined) {
  const ctx = await openOrganization(operator, organizationName)
  const { organization } = ctx
  const { id: sourceId } = await findSource(ctx, given)
  const source = await findWebhookSource(ctx.db, organization.id, sourceId)
  if (!source) throw new CliError(`${organization.name} has no webhook source ${given} any more.`)
  const query = { sourceId, kind: 'payload', limit: 1 } as const
  return {
    source,
    organizationId: organization.id,
    /** Resolves when every later payload will be among them. Those that were never sent are left out. */
    payloads: async (signal: AbortSignal) =>
      payloadsAfter((await listDeliveries(ctx.db, organization.id, query)).rows, signal),
  }

  async function* payloadsAfter(newest: readonly LoggedDelivery[], signal: AbortSignal) {
    for await (const news of followDeliveries(ctx, query, newest, signal)) {
      for (const { id, outcome, request_body: body, request_id: requestId } of news) {
        if (outcome !== 'invalid') yield { body, copyOf: id, requestId: requestId ?? id }
      }
    }
  }
}
