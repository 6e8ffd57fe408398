import { promises as dns } from 'node:dns'

/** What DNS says of a name. `addresses` holds every A and AAAA record; it is never empty. */
export type Resolution =
  | { ok: true; addresses: string[] }
  | { ok: false; cause: 'name_not_found' | 'dns_failed'; detail: string }

export type NameResolver = {
  /** Asks for the A and AAAA records of an absolute name. Never rejects; always ends, by the resolver's own timeouts. */
  resolve(name: string): Promise<Resolution>
  /** Ends every question under way, so that nothing keeps the process up. */
  close(): void
}

export type ResolverOptions = {
  /** `address` or `address:port` of each name server. Default: those of the system, read anew every minute. */
  servers?: string[]
  /** How long the first try waits; each further try waits longer, at most twice as long. Default 1,500. */
  timeoutMs?: number
  /** How often each server is asked. Default 3: with the default timeout all of it ends within 7.5 s for one server. */
  tries?: number
  /** A clock in milliseconds that never goes back. Default `performance.now`. */
  now?: () => number
}

/** How much longer the other address family may take once one has answered with records. */
const otherFamilyPatienceMs = 1000

const serversMaxAgeMs = 60_000

/**
 * A resolver that speaks DNS itself (c-ares): `dns.lookup` would run in the thread pool, where a few dead name servers
 * hold up every look-up of the process. So `/etc/hosts` and search domains play no part. Nothing is cached.
 */
export function createResolver(options: ResolverOptions = {}): NameResolver {
  const timeoutMs = options.timeoutMs ?? 1500
  const now = options.now ?? (() => performance.now())
  // One channel serves many questions, since making one costs as much as a question.
  let channel = openChannel()
  let openedAtMs = now()
  const retired = new Set<dns.Resolver>()

  function openChannel(): dns.Resolver {
    const opened = new dns.Resolver({ timeout: timeoutMs, tries: options.tries ?? 3, maxTimeout: 2 * timeoutMs })
    if (options.servers !== undefined) opened.setServers(options.servers)
    return opened
  }

  function currentChannel(): dns.Resolver {
    if (now() - openedAtMs > serversMaxAgeMs) {
      // Questions under way stay with the old channel, which ends by itself once they are answered.
      retired.clear()
      retired.add(channel)
      channel = openChannel()
      openedAtMs = now()
    }
    return channel
  }

  return {
    async resolve(name) {
      const asked = currentChannel()
      // A dot at the end makes the name absolute, whatever the resolver makes of search domains.
      const absolute = `${name}.`
      // IPv4 comes first, also when it is dialled: machines whose IPv6 leads nowhere are the more common kind.
      const questions = [settle(asked.resolve4(absolute)), settle(asked.resolve6(absolute))]
      return toResolution(await collect(questions), name)
    },
    close() {
      for (const each of [channel, ...retired]) each.cancel()
    },
  }
}

type FamilyAnswer = { addresses: string[]; code: string | null }

async function settle(question: Promise<string[]>): Promise<FamilyAnswer> {
  try {
    return { addresses: await question, code: null }
  } catch (error) {
    return { addresses: [], code: readCode(error) }
  }
}

function readCode(error: unknown): string {
  const isCoded = typeof error === 'object' && error !== null && 'code' in error
  return isCoded && typeof error.code === 'string' ? error.code : 'EUNKNOWN'
}

/** Waits for both families, but not long for the second one when the first already has records. */
async function collect(questions: Promise<FamilyAnswer>[]): Promise<FamilyAnswer[]> {
  const answers: FamilyAnswer[] = questions.map(() => ({ addresses: [], code: 'ETIMEOUT' }))
  let timer: ReturnType<typeof setTimeout> | undefined
  const patience = new Promise<void>((resolve) => {
    for (const [index, question] of questions.entries()) {
      void question.then((answer) => {
        answers[index] = answer
        if (answer.addresses.length > 0) timer ??= setTimeout(resolve, otherFamilyPatienceMs)
        return undefined
      })
    }
  })
  await Promise.race([Promise.all(questions), patience])
  clearTimeout(timer)
  return answers
}

function toResolution(answers: FamilyAnswer[], name: string): Resolution {
  const addresses = answers.flatMap((answer) => answer.addresses)
  if (addresses.length > 0) return { ok: true, addresses }
  // One family that failed leaves the question open, even where the other says that there is no such record.
  const failure = answers.map((answer) => answer.code).find((code) => code !== 'ENOTFOUND' && code !== 'ENODATA')
  if (failure === undefined || failure === null) {
    const hasNoAddress = answers.some((answer) => answer.code === 'ENODATA' || answer.code === null)
    const detail = hasNoAddress ? `the name ${name} has no address` : `the name ${name} does not exist`
    return { ok: false, cause: 'name_not_found', detail }
  }
  return {
    ok: false,
    cause: 'dns_failed',
    detail: `the name ${name} could not be looked up (${reasons[failure] ?? failure})`,
  }
}

const reasons: Record<string, string> = {
  ETIMEOUT: 'its name server did not answer in time',
  ESERVFAIL: 'its name server reports a failure',
  EREFUSED: 'its name server refuses to answer',
  ECONNREFUSED: 'the name server cannot be reached',
  EBADRESP: 'its name server sent a broken answer',
  EFORMERR: 'its name server does not understand the question',
  EBADNAME: 'it is no valid name',
  ECANCELLED: 'the look-up was stopped',
}
