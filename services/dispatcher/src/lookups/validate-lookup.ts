import { findLookupErrors, type LookupIn } from '@workflow-service/contract'
import type { Rule } from '@workflow-service/service-kit'
import { checkUrl } from '../outbound/check-url.ts'
import type { Subnets } from '../outbound/parse-subnets.ts'

/** Creates the checks of a save beyond its schema. */
export function validateLookup(allowed: Subnets): Rule<LookupIn, void> {
  return (input, { violations }) => {
    if (violations.length > 0) return []
    const lookup = input as LookupIn
    const check = checkUrl(lookup.url, allowed)
    if (!check.isAllowed) return [{ field: 'url', code: check.code, message: check.message }]
    const hasQuery = lookup.kind === 'http' && check.url.search !== ''
    const message = hasQuery ? 'The URL must have no query: the tools have it' : 'The URL must have no fragment'
    const hasMore = hasQuery || check.url.hash !== ''
    const extra = hasMore ? [{ field: 'url', code: 'url_parsing' as const, message }] : []
    return [...extra, ...findLookupErrors(lookup)]
  }
}
