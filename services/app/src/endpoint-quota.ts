import type { Limiter, Quota } from '@workflow-service/service-kit/rate-limit'
import { rateLimited } from './auth/sign-in-limits.ts'

/**
 * Verifications and tests of an organization. They go to any URL that a person enters, whose owner need not have agreed
 * to get them. Not counted by host: a wildcard in DNS gives one endpoint any number of names.
 */
export const ENDPOINT_QUOTA: Quota = { limit: 60, windowSeconds: 60 }

/** Counts a verification or a test before it is sent. @throws ApiError 429 */
export async function countEndpointRequest(
  { endpointLimiter }: { readonly endpointLimiter: Limiter },
  organizationId: string,
): Promise<void> {
  const counted = await endpointLimiter.consume(`endpoint-requests:${organizationId}`)
  if (counted.isAllowed) return
  throw rateLimited(
    `The people of the organization have made ${ENDPOINT_QUOTA.limit} saves and tests that send a request within a minute.`,
    counted,
  )
}
