import { hash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { foldCase, isDatabaseUnavailable } from '@workflow-service/database'
import { ApiError, type Logger } from '@workflow-service/service-kit'
import {
  createLocalLimiter,
  createSharedLimiter,
  type Limiter,
  networkOf,
  type Quota,
  rateLimited,
} from '@workflow-service/service-kit/rate-limit'
import type { Visitor } from './principal.ts'

const NETWORK_QUOTA: Quota = { limit: 20, windowSeconds: 300 }
/** Only counts: its limit is never a reason to refuse. */
const ACCOUNT_QUOTA: Quota = { limit: 1_000, windowSeconds: 900 }
const FREE_FAILURES = 5
const FIRST_DELAY_MS = 250
const MAX_DELAY_MS = 8_000

interface LimitStore {
  readonly url: string | undefined
  readonly logger: Logger
}

/** Counts in the store of `url`; without one, each process counts alone. */
export function createLimiter(quota: Quota, { url, logger }: LimitStore): Limiter {
  if (url === undefined) return createLocalLimiter(quota)
  return createSharedLimiter({ url, quota, logger, onStoreState: () => {}, onLocalDecision: () => {} })
}

export function createSignInLimits(store: LimitStore) {
  const networks = createLimiter(NETWORK_QUOTA, store)
  const accounts = createLimiter(ACCOUNT_QUOTA, store)
  return {
    /**
     * Runs a check of a password, which resolves to undefined if it fails. Failures are counted by network, which is
     * refused after 20, and by email address, where each one delays the next: an account is never locked, so a stranger
     * cannot lock a person out. One that rejects is a failure, too, unless `verifying` was unavailable: then it says
     * nothing of the password.
     * @throws ApiError 429
     */
    attempt: async <Result>(
      visitor: Visitor,
      email: string,
      check: (verifying: <Value>(verification: Promise<Value>) => Promise<Value>) => Promise<Result | undefined>,
    ) => {
      const network = `sign-in-network:${networkOf(visitor.address)}`
      const byNetwork = await networks.consume(network)
      if (!byNetwork.isAllowed) throw rateLimited('Too many failed attempts.', byNetwork)
      // Hashed, because what was typed may be a password.
      const account = `sign-in-account:${hash('sha256', foldCase(email), 'base64url')}`
      const byAccount = await accounts.consume(account)
      await sleep(delayMs(ACCOUNT_QUOTA.limit - byAccount.remaining - 1))
      const giveBack = (): void => {
        networks.giveBack(network, byNetwork)
        accounts.giveBack(account, byAccount)
      }
      const result = await check((verification) =>
        verification.catch((error: unknown) => {
          if (isUnavailable(error)) giveBack()
          throw error
        }),
      )
      if (result !== undefined) giveBack()
      return result
    },
    close: () => {
      networks.close()
      accounts.close()
    },
  }
}

function isUnavailable(error: unknown): boolean {
  return error instanceof ApiError ? error.status === 503 : isDatabaseUnavailable(error)
}

/** Returns how long an attempt waits after so many failures. */
export function delayMs(failures: number): number {
  return failures < FREE_FAILURES ? 0 : Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** (failures - FREE_FAILURES))
}
