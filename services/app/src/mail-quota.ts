import type { Quota } from '@workflow-service/service-kit/rate-limit'

/**
 * Emails to an address, and tests of an organization. Who sets an address and the texts need not be its owner, whom the
 * mail server of the operator must not flood.
 */
export const MAIL_QUOTA: Quota = { limit: 20, windowSeconds: 3_600 }
