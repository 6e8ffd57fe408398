import type { Quota } from '@workflow-service/service-kit/rate-limit'

/**
 * Emails of an organization to an address, and its tests. Who sets an address and the texts need not be its owner, whom
 * the mail server of the operator must not flood.
 */
export const MAIL_QUOTA: Quota = { limit: 20, windowSeconds: 3_600 }

/** Emails of all organizations to an address: more than of one, which must not keep those of others from a person. */
export const ADDRESS_QUOTA: Quota = { limit: 60, windowSeconds: 3_600 }
