import { ApiError } from '@workflow-service/service-kit'
import type { Response } from 'express'
import type { RateDecision } from './rate-limits.ts'

/**
 * Adds the rate limit's headers to the answer. Undefined when there is no limit.
 * @throws ApiError 429 with `Retry-After` when the limit is exceeded.
 */
export function applyRateLimit(res: Response, decision: RateDecision | undefined): void {
  if (!decision) return
  ;(res.locals.answerHeaders ??= []).push(...decision.headers)
  if (decision.isAllowed) return
  const seconds = decision.resetSeconds
  const message = `Too many requests. Try again in ${seconds} ${seconds === 1 ? 'second' : 'seconds'}.`
  throw new ApiError('rate_limited', message, { headers: { 'Retry-After': String(seconds) } })
}
