import { promises as dns } from 'node:dns'
import { withTimeout } from '@workflow-service/service-kit'

/** The answer of DNS for a name. `addresses` has every A and AAAA record and is never empty. */
export type Resolution =
  | { ok: true; addresses: string[] }
  | { ok: false; cause: 'name_not_found' | 'dns_failed'; detail: string }

export interface NameResolver {
  /** Queries the A and AAAA records of an absolute name. Never rejects, and ends within the resolver's time-outs. */
  resolve(name: string): Promise<Resolution>
  /** Cancels all queries, so that none keeps the process running. */
  close(): void
}

export interface ResolverOptions {
  /** `address` or `address:port` of each name server. Default: the system's, read again every minute. */
  servers?: string[]
  /** Time-out of the first try. Each further try waits longer, at most twice as long. Default 1,500. */
  timeoutMs?: number
  /** How often each server is queried. Default 3: with the default time-out one server takes at most 7.5 s. */
  tries?: number
  /** A monotonic clock in milliseconds. Default `performance.now`. */
  now?: () => number
}

/** How long to wait for the other address family after one has answered with records. */
const OTHER_FAMILY_WAIT_MS = 1000

const SERVERS_MAX_AGE_MS = 60_000

/**
 * Creates a resolver that speaks DNS itself (c-ares). `dns.lookup` would run in the thread pool, where queries to a few
 * unresponsive name servers delay every other look-up of the process. So `/etc/hosts` and search domains are not used.
 * Nothing is cached.
 */
export function createResolver(options: ResolverOptions = {}): NameResolver {
  const timeoutMs = options.timeoutMs ?? 1500
  const now = options.now ?? (() => performance.now())
  // Shared by all queries: creating a channel costs as much as a query.
  let channel = openChannel()
  let openedAtMs = now()
  const retired = new Set<dns.Resolver>()

  function openChannel(): dns.Resolver {
    const opened = new dns.Resolver({ timeout: timeoutMs, tries: options.tries ?? 3, maxTimeout: 2 * timeoutMs })
    if (options.servers !== undefined) opened.setServers(options.servers)
    return opened
  }

  function currentChannel(): dns.Resolver {
    if (now() - openedAtMs > SERVERS_MAX_AGE_MS) {
      // Running queries keep the old channel, which is freed when they end.
      retired.clear()
      retired.add(channel)
      channel = openChannel()
      openedAtMs = now()
    }
    return channel
  }

  return {
    async resolve(name) {
      const current = currentChannel()
      // The dot at the end makes the name absolute, so that no search domain is appended.
      const absolute = `${name}.`
      // IPv4 first, also when connecting: broken IPv6 is more common than broken IPv4.
      const queries = [settle(current.resolve4(absolute)), settle(current.resolve6(absolute))]
      return toResolution(await collect(queries), name)
    },
    close() {
      for (const each of [channel, ...retired]) each.cancel()
    },
  }
}

interface FamilyAnswer {
  addresses: string[]
  code: string | null
}

async function settle(query: Promise<string[]>): Promise<FamilyAnswer> {
  try {
    return { addresses: await query, code: null }
  } catch (error) {
    return { addresses: [], code: readCode(error) }
  }
}

function readCode(error: unknown): string {
  const hasCode = typeof error === 'object' && error !== null && 'code' in error
  return hasCode && typeof error.code === 'string' ? error.code : 'EUNKNOWN'
}

/** Waits for both families, but only briefly for the second one if the first already has records. */
async function collect(queries: Promise<FamilyAnswer>[]): Promise<FamilyAnswer[]> {
  const withRecords = queries.map(async (query) =>
    (await query).addresses.length > 0 ? undefined : Promise.reject(NO_RECORDS),
  )
  await Promise.any(withRecords).catch(() => {})
  return Promise.all(queries.map((query) => withTimeout(query, OTHER_FAMILY_WAIT_MS).catch(() => NO_ANSWER)))
}

/** One object for all rejections: most names have no IPv6 records, and an error with a new stack takes longer. */
const NO_RECORDS = new Error('This family has no records')
const NO_ANSWER: FamilyAnswer = { addresses: [], code: 'ETIMEOUT' }

function toResolution(answers: FamilyAnswer[], name: string): Resolution {
  const addresses = answers.flatMap((answer) => answer.addresses)
  if (addresses.length > 0) return { ok: true, addresses }
  // If one family failed, the name may still have addresses, even if the other family has none.
  const failure = answers.map((answer) => answer.code).find((code) => code !== 'ENOTFOUND' && code !== 'ENODATA')
  if (failure === undefined || failure === null) {
    const hasNoAddress = answers.some((answer) => answer.code === 'ENODATA' || answer.code === null)
    const detail = hasNoAddress ? `the name ${name} has no address` : `the name ${name} does not exist`
    return { ok: false, cause: 'name_not_found', detail }
  }
  return {
    ok: false,
    cause: 'dns_failed',
    detail: `the name ${name} could not be looked up (${FAILURE_REASONS[failure] ?? failure})`,
  }
}

const FAILURE_REASONS: Record<string, string> = {
  ETIMEOUT: 'its name server did not answer in time',
  ESERVFAIL: 'its name server reports a failure',
  EREFUSED: 'its name server refuses to answer',
  ECONNREFUSED: 'the name server cannot be reached',
  EBADRESP: 'its name server sent an invalid answer',
  EFORMERR: 'its name server does not understand the query',
  EBADNAME: 'it is not a valid name',
  ECANCELLED: 'the look-up was cancelled',
}
