import { type Limiter, type Quota, rateLimited } from '@workflow-service/service-kit/rate-limit'

/**
 * Tests of an organization, and verifications that are not confirmed. They go to any URL that a person enters, whose
 * owner need not have agreed to it. Not counted by host: a wildcard in DNS gives one endpoint any number of names.
 */
export const ENDPOINT_QUOTA: Quota = { limit: 60, windowSeconds: 60 }

/**
 * Counts a verification or a test before it is sent. Returns what takes it back once the endpoint has confirmed that it
 * wants to get requests.
 * @throws ApiError 429
 */
export async function countEndpointRequest(
  { endpointLimiter }: { readonly endpointLimiter: Limiter },
  organizationId: string,
): Promise<() => void> {
  const name = `endpoint-requests:${organizationId}`
  const counted = await endpointLimiter.consume(name)
  if (counted.isAllowed) return () => endpointLimiter.giveBack(name, counted)
  throw rateLimited(
    `The people of the organization have made ${ENDPOINT_QUOTA.limit} tests, and saves that no endpoint confirmed, within a minute.`,
    counted,
  )
}
