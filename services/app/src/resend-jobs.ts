import { setTimeout as delay } from 'node:timers/promises'
import {
  deferResends,
  findAskingForApproval,
  type LeasedResends,
  leaseResendJob,
  recordResends,
  releaseResendJob,
} from '@workflow-service/database'
import { ApiError, newRequestId } from '@workflow-service/service-kit'
import type { AppServiceContext } from './app-service-context.ts'

/** Jobs that a process sends at once, so that one with a slow endpoint does not hold up the others. */
const JOBS_AT_ONCE = 4
/** After which a job lets another one be sent: some have 5,000 payloads, one in a second. */
const TURN_MS = 15_000
const SECOND_MS = 1_000
/** Well below the lease of 15 s. */
const RENEW_MS = 5_000
/** After which a job is tried again of which all sources are paused, or the organization is suspended. */
const PAUSED_SECONDS = 15

type JobContext = Pick<AppServiceContext, 'db' | 'dispatcher' | 'changeNotices'>

/**
 * Sends the payloads of running jobs until there is none. Nothing is sent twice, also after a kill: the ids of the
 * new deliveries are in the job, and the dispatcher sends each at most once. `untilNextSecond` is called when a job
 * begins to send what its rate allows in a second.
 */
export async function sendResendJobs(
  ctx: JobContext,
  signal: AbortSignal,
  untilNextSecond = async (): Promise<void> => await pauseSecond(signal),
  turnMs = TURN_MS,
): Promise<void> {
  const first = await leaseResendJob(ctx.db)
  if (!first) return
  let active = 0
  const failed = new AbortController()
  const over = AbortSignal.any([signal, failed.signal])
  const work = async (leased?: LeasedResends): Promise<void> => {
    let next = leased
    while (!over.aborted) {
      next ??= await leaseResendJob(ctx.db)
      if (next) {
        active += 1
        await sendJob(ctx, next, signal, { untilNextSecond, turnMs }).finally(() => (active -= 1))
        next = undefined
      } else if (active > 0) {
        await pauseSecond(over)
      } else {
        return
      }
    }
  }
  // The first is at work before the others look for a job, so that these stay.
  const workers = [work(first), ...Array.from({ length: JOBS_AT_ONCE - 1 }, () => work())]
  for (const worker of workers) worker.catch(() => failed.abort())
  // After an error, too, a stop and the next look for jobs wait for what is under way.
  const failure = (await Promise.allSettled(workers)).find(({ status }) => status === 'rejected')
  if (failure?.status === 'rejected') throw failure.reason
}

async function sendJob(
  ctx: JobContext,
  leased: LeasedResends,
  stopping: AbortSignal,
  { untilNextSecond, turnMs }: { untilNextSecond: () => Promise<void>; turnMs: number },
): Promise<void> {
  const turnEndsMs = performance.now() + turnMs
  // A job that a person stops while the dispatcher is unavailable.
  const ended = new AbortController()
  const renewing = setInterval(() => {
    recordResends(ctx.db, leased, { sent: 0, notSent: 0 }).then(
      (renewed) => renewed ?? ended.abort(),
      () => {},
    )
  }, RENEW_MS)
  const signal = AbortSignal.any([stopping, ended.signal])
  let job: LeasedResends | undefined = leased
  try {
    while (job && job.next.length > 0) {
      const second = untilNextSecond()
      // The dispatcher takes a payload that an admin sends again for approved. These are not looked at one by one.
      const asking = await findAskingForApproval(ctx.db, job)
      const results = await Promise.all(
        job.next.map(async (each): Promise<ResendResult> =>
          asking.has(each.deliveryId) ? 'not_sent' : await resend(ctx, leased, each, { signal, stopping, turnEndsMs }),
        ),
      )
      // What was not answered is asked for again by the process that continues. No other one counts those of a job that
      // a person has stopped.
      if (stopping.aborted) break
      const left = results.findIndex(isLeft)
      // The dispatcher sends those after it at most once, also when it is asked for them again. No process asks for
      // those of a job that has ended.
      const end = left === -1 || ended.signal.aborted ? results.length : left
      const answered = results.slice(0, end).filter((result) => !isLeft(result))
      const notSent = answered.filter((result) => result === 'not_sent').length
      const unanswered = job.next.map((each) => each.deliveryId).filter((_id, index) => results[index] === 'unanswered')
      job = await recordResends(ctx.db, leased, { sent: answered.length - notSent, notSent })
      if (job && left !== -1) job = await deferResends(ctx.db, leased, unanswered)
      ctx.changeNotices.add(leased.organizationId, 'deliveries')
      await second
      if (performance.now() >= turnEndsMs) break
    }
  } finally {
    clearInterval(renewing)
    // A job that waits for paused sources would keep its slot from the jobs of other organizations.
    await releaseResendJob(ctx.db, leased, job?.next.length === 0 ? PAUSED_SECONDS : 0)
  }
}

type ResendResult = 'sent' | 'not_sent' | 'paused' | 'unanswered'

const isLeft = (result: ResendResult): boolean => result === 'paused' || result === 'unanswered'

/**
 * Whether the payload was sent, with any outcome. Waits while the dispatcher is unavailable, or cannot send it for now,
 * until the turn of the job is over or the signal aborts; and for a payload under way, until the process stops.
 */
async function resend(
  { dispatcher }: JobContext,
  { organizationId, createdBy }: LeasedResends,
  { deliveryId, resendId }: LeasedResends['next'][number],
  { signal, stopping, turnEndsMs }: { signal: AbortSignal; stopping: AbortSignal; turnEndsMs: number },
): Promise<ResendResult> {
  const body = { organization_id: organizationId, resend_of: deliveryId, sent_by: createdBy }
  while (!signal.aborted) {
    try {
      const params = { delivery_id: resendId }
      await dispatcher.call('sendPayload', { params, body, requestId: newRequestId(), signal: stopping })
      return 'sent'
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      if (['source_paused', 'organization_suspended'].includes(error.code)) return 'paused'
      if (error.status < 500) return 'not_sent'
      if (performance.now() >= turnEndsMs) break
      await pauseSecond(signal)
    }
  }
  return 'unanswered'
}

async function pauseSecond(signal: AbortSignal): Promise<void> {
  await delay(SECOND_MS, undefined, { signal }).catch(() => {})
}
