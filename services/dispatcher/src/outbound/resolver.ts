import { promises as dns } from 'node:dns'
import { withTimeout } from '@workflow-service/service-kit'
import { type UnansweredOutcome, unreachableOutcome } from './outbound-result.ts'

export interface NameResolver {
  /**
   * Queries the A and AAAA records of an absolute name. Resolves to the addresses of all of them, or to the outcome of
   * the request if there is none; never rejects. Ends when the signal aborts, which the caller does at its deadline.
   */
  resolve(name: string, signal: AbortSignal): Promise<string[] | UnansweredOutcome>
  /** Cancels all queries, so that none keeps the process running. */
  close(): void
}

export interface ResolverOptions {
  /** `address` or `address:port` of each name server. Default: the system's, read again every minute. */
  servers?: string[]
  /**
   * After this time without an answer, the query is repeated; after twice as long once more, and so on. Default 1,500.
   */
  retryAfterMs?: number
  /** How often a query is sent, each time to the next server. Default 3. */
  tries?: number
  /** How long one query may take. Default 30,000, the longest deadline of a request. */
  timeoutMs?: number
  /** A monotonic clock in milliseconds. Default `performance.now`. */
  now?: () => number
}

/** How long to wait for the other address family after one has answered with records. */
const OTHER_FAMILY_WAIT_MS = 1000

const SERVERS_MAX_AGE_MS = 60_000

/** One c-ares channel per name server, which asks this server first. `preferred` is the one that answered last. */
interface Channels {
  all: dns.Resolver[]
  preferred: number
  openedAtMs: number
}

/**
 * Creates a resolver that speaks DNS itself (c-ares). `dns.lookup` would run in the thread pool, where queries to a few
 * unresponsive name servers delay every other look-up of the process. So `/etc/hosts` and search domains are not used.
 * Nothing is cached. A query that is repeated keeps waiting for its first answer too, so that a name server that takes
 * 9 s is still heard: c-ares itself forgets a query when it repeats it.
 */
export function createResolver(options: ResolverOptions = {}): NameResolver {
  const { retryAfterMs = 1500, tries = 3, timeoutMs = 30_000, now = () => performance.now() } = options
  // Shared by all queries: to create a channel takes time, too.
  let channels = openChannels()
  const retired = new Set<dns.Resolver>()

  function openChannels(): Channels {
    const first = new dns.Resolver({ timeout: timeoutMs, tries: 1 })
    const servers = options.servers ?? first.getServers()
    if (options.servers) first.setServers(options.servers)
    const others = servers.slice(1).map((_server, index) => {
      const channel = new dns.Resolver({ timeout: timeoutMs, tries: 1 })
      channel.setServers([...servers.slice(index + 1), ...servers.slice(0, index + 1)])
      return channel
    })
    return { all: [first, ...others], preferred: 0, openedAtMs: now() }
  }

  function currentChannels(): Channels {
    if (now() - channels.openedAtMs > SERVERS_MAX_AGE_MS) {
      // Running queries keep the old channels, which are freed when they end.
      retired.clear()
      for (const channel of channels.all) retired.add(channel)
      channels = openChannels()
    }
    return channels
  }

  /** Queries one family, `tries` times at most, and resolves with the first answer. */
  function queryFamily(
    { all, preferred }: Channels,
    method: 'resolve4' | 'resolve6',
    name: string,
    signal: AbortSignal,
  ): Promise<FamilyAnswer> {
    const { promise, resolve } = Promise.withResolvers<FamilyAnswer>()
    let started = 0
    let running = 0
    let timer: ReturnType<typeof setTimeout> | undefined
    const end = (answer: FamilyAnswer): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', stop)
      started = tries
      resolve(answer)
    }
    const stop = (): void => end(NO_ANSWER)
    const start = async (): Promise<void> => {
      clearTimeout(timer)
      const attempt = started
      const channelIndex = (preferred + attempt) % all.length
      started += 1
      running += 1
      if (started < tries) timer = setTimeout(() => void start(), retryAfterMs * 2 ** attempt)
      const answer = await settle(async () => (await all[channelIndex]?.[method](name)) ?? [])
      running -= 1
      if (FINAL_CODES.has(answer.code)) {
        channels.preferred = channelIndex
        end(answer)
      } else if (started < tries) await start()
      else if (running === 0) end(answer)
    }
    signal.addEventListener('abort', stop, { once: true })
    void start()
    return promise
  }

  return {
    async resolve(name, signal) {
      const current = currentChannels()
      // The dot at the end makes the name absolute, so that no search domain is appended.
      const absolute = `${name}.`
      // IPv4 first, also when connecting: broken IPv6 is more common than broken IPv4.
      const queries = [
        queryFamily(current, 'resolve4', absolute, signal),
        queryFamily(current, 'resolve6', absolute, signal),
      ]
      return toAddresses(await collect(queries), name)
    },
    close() {
      for (const each of [...channels.all, ...retired]) each.cancel()
    },
  }
}

/** Records, or an answer that no other name server will change. Another failure is tried again. */
const FINAL_CODES = new Set([null, 'ENOTFOUND', 'ENODATA', 'EBADNAME', 'ECANCELLED'])

/** c-ares could open no socket, or no name server of the service is running. */
const UNAVAILABLE_CODES = new Set(['ECONNREFUSED', 'ENOMEM'])

interface FamilyAnswer {
  addresses: string[]
  code: string | null
}

async function settle(query: () => Promise<string[]>): Promise<FamilyAnswer> {
  try {
    return { addresses: await query(), code: null }
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

function toAddresses(answers: FamilyAnswer[], name: string): string[] | UnansweredOutcome {
  const addresses = answers.flatMap((answer) => answer.addresses)
  if (addresses.length > 0) return addresses
  // If one family failed, the name may still have addresses, even if the other family has none.
  const failure = answers.map((answer) => answer.code).find((code) => code !== 'ENOTFOUND' && code !== 'ENODATA')
  if (failure === undefined || failure === null) {
    const hasNoAddress = answers.some((answer) => answer.code === 'ENODATA' || answer.code === null)
    const what = hasNoAddress ? 'has no address' : 'does not exist'
    return unreachableOutcome('name_not_found', `the name ${name} ${what}`)
  }
  const detail = `the name ${name} could not be looked up (${FAILURE_REASONS[failure] ?? failure})`
  return UNAVAILABLE_CODES.has(failure) ? { kind: 'unavailable', detail } : unreachableOutcome('dns_failed', detail)
}

const FAILURE_REASONS: Record<string, string> = {
  ETIMEOUT: 'its name server did not answer in time',
  ESERVFAIL: 'its name server reports a failure',
  EREFUSED: 'its name server refuses to answer',
  ECONNREFUSED: 'the name servers of the service cannot be reached',
  EBADRESP: 'its name server sent an invalid answer',
  EFORMERR: 'its name server does not understand the query',
  EBADNAME: 'it is not a valid name',
  ECANCELLED: 'the look-up was cancelled',
}
