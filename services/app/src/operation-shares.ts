import type { AppOperationId } from '@workflow-service/contract'
import { InFlightLimiter, type OperationShares, type ReleaseSlot, tooManyRequests } from '@workflow-service/service-kit'
import { networkOf } from '@workflow-service/service-kit/rate-limit'
import type { Principal, Visitor } from './auth/principal.ts'

/**
 * Operations that read or check much for one request: exports, usage, searches, the audit log, journals (4 MiB, 60 ms),
 * payloads that wait (1.6 MiB), and files with their rules.
 */
const HEAVY: ReadonlySet<string> = new Set<AppOperationId>([
  'exportManifest',
  'exportWorkflow',
  'getUsage',
  'getOverview',
  'markAttentionDone',
  'search',
  'listAllDeliveries',
  'listApprovals',
  'getRun',
  'getRunPrompts',
  'getRulesDraft',
  'approveDelivery',
  'declineDelivery',
  'cancelRun',
  'tryWorkflow',
  'saveCase',
  'startEvaluation',
  'listSourceWorkflows',
  'checkRules',
  'getWorkflowVersion',
  'restoreWorkflowVersion',
  'previewResends',
  'createResendJob',
  'listAuditEvents',
  'getFile',
  'saveFile',
  'deleteFile',
  'saveTrigger',
  'deleteTrigger',
  'duplicateWorkflow',
  'deleteWorkflow',
  'deleteOrganization',
])

/** Lists that compare up to 20,000 rows for a page when they are searched. */
const HEAVY_WITH_SEARCH: ReadonlySet<string> = new Set<AppOperationId>([
  'listRuns',
  'listDeliveries',
  'listAllDeliveries',
])

function isHeavy(id: string, target: string): boolean {
  const asksFor = (name: string) => Boolean(new URLSearchParams(target.split('?')[1]).get(name))
  // An index has the rows of one source in their order.
  const isLog = id === 'listAllDeliveries' && asksFor('source_id')
  return (HEAVY.has(id) && !isLog) || (HEAVY_WITH_SEARCH.has(id) && asksFor('search'))
}

/**
 * Operations that wait for an endpoint, for a password to be hashed, or for as long as a page is open: their statements
 * are short, or take turns by `inTurn`.
 */
const WAITING: ReadonlySet<string> = new Set<AppOperationId>([
  'setUp',
  'signIn',
  'startOidc',
  'finishOidc',
  'openLink',
  'acceptLink',
  'changePassword',
  'confirmPassword',
  'streamEvents',
  'saveWebhookSource',
  'testWebhookSource',
  'saveLookup',
  'testLookup',
  'resendDelivery',
  'testNoticeWebhook',
  'testMyNotices',
])

/** How long a request waits for its turn. */
const WAIT_MS = 15_000
/** Requests that wait keep their bodies in memory. */
const MAX_WAITING = { maxWaiting: 400, maxWaitingPerKey: 200 }
/** Heavy operations keep larger ones: so many are read from their connections; others wait there. */
const HEAVY_ADMITTED = { total: 50, perKey: 3 }
const HEAVY_OUTSIDE = { maxWaiting: 200, maxWaitingPerKey: 40 }
const HEAVY_AT_ONCE = 2
const WAITING_AT_ONCE = { total: 400, perKey: 100 }
/**
 * Requests at once of people who are not signed in, by network. They have their own limit, because a sign-in to an
 * account with many failures lasts 8 s at most. Further requests of a network wait: each sign-in counts as failed until
 * it succeeds, and after 20 failures the network is refused.
 */
const STRANGERS_AT_ONCE = { total: 400, perKey: 10 }

/**
 * Creates the shares of a process: each organization, and each person in it, has a share of the requests that are
 * answered at once. Turns go to the organizations in rotation, and within one to the requests in the order of their
 * arrival. Without them, 40 exports of one organization took every connection of the database pool, and the reads of
 * all others failed. Small and heavy operations together use no more connections than the pool has.
 */
export function createOperationShares({ databasePoolSize }: { readonly databasePoolSize: number }) {
  const heavyAtOnce = Math.min(HEAVY_AT_ONCE, databasePoolSize - 1)
  const total = Math.max(1, databasePoolSize - heavyAtOnce)
  const perOrganization = Math.ceil(total / 2)
  /**
   * Of people: one person leaves turns to the others of the organization, and waits without taking one of its turns.
   */
  const people = limiterOf({ total: Number.POSITIVE_INFINITY, perKey: Math.ceil(perOrganization / 2) })
  const small = limiterOf({ total, perKey: perOrganization })
  const heavyAdmitted = limiterOf(HEAVY_ADMITTED, HEAVY_OUTSIDE)
  const heavy = limiterOf({ total: heavyAtOnce, perKey: 1 })
  const waiting = limiterOf(WAITING_AT_ONCE)
  const strangers = limiterOf(STRANGERS_AT_ONCE)

  /** Reads in the caller's share of the connections, also for an operation of `WAITING`. @throws ApiError 503 */
  const inTurn = async <Result>(caller: Visitor | Principal, work: () => Result | Promise<Result>): Promise<Result> => {
    const inOrganization = () => small.run(keyOf(caller), work, { refuse: tooManyRequests })
    return 'userId' in caller
      ? await people.run(caller.userId, inOrganization, { refuse: tooManyRequests })
      : await inOrganization()
  }
  const shares: OperationShares<Visitor | Principal> = {
    admit: (id, caller, target) => (isHeavy(id, target) ? acquire(heavyAdmitted, keyOf(caller)) : undefined),
    run: async (id, caller, target, respond) => {
      if (WAITING.has(id)) {
        const limiter = 'userId' in caller ? waiting : strangers
        return await limiter.run(keyOf(caller), respond, { refuse: tooManyRequests })
      }
      if (isHeavy(id, target)) return await respondAndPause(respond, await acquire(heavy, keyOf(caller)))
      return await inTurn(caller, respond)
    },
  }
  return { ...shares, inTurn }
}

/**
 * Answers a heavy operation and keeps its turn for as long again as the event loop was busy meanwhile: the heavy
 * operations of one organization take at most half of the process's time, however many there are. The response does not
 * wait for it.
 */
async function respondAndPause(respond: () => void | Promise<void>, release: ReleaseSlot): Promise<void> {
  const before = performance.eventLoopUtilization()
  try {
    await respond()
  } finally {
    const { active } = performance.eventLoopUtilization(before)
    setTimeout(release, active).unref()
  }
}

/** What shares turns: an organization, or the network of a person who is not signed in. */
export function keyOf(caller: Visitor | Principal): string {
  return 'organizationId' in caller ? caller.organizationId : networkOf(caller.address, 48)
}

function limiterOf(limits: { total: number; perKey: number }, waiting = MAX_WAITING): InFlightLimiter {
  return new InFlightLimiter({ ...limits, ...waiting, waitMs: WAIT_MS })
}

/** @throws ApiError 503 */
async function acquire(limiter: InFlightLimiter, key: string): Promise<ReleaseSlot> {
  const slot = await limiter.acquire(key)
  if (typeof slot === 'string') throw tooManyRequests(slot)
  return slot
}
