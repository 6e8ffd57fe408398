import type { OrganizationOut } from '@workflow-service/contract'
import type { Principal } from '@workflow-service/database'
import type { PublicApiHandlers } from '../operation-handlers.ts'

/**
 * `GET /v1/organization` (contract 4.1): what was looked up with the key, hence at most as old as the key's entry in the
 * cache. The text is made once for each entry.
 */
export function getOrganization(): PublicApiHandlers['getOrganization'] {
  const bodies = new WeakMap<Principal, string>()
  return ({ principal }) => {
    let body = bodies.get(principal)
    if (!body) {
      const organization: OrganizationOut = { id: principal.organizationId, name: principal.organizationName }
      body = JSON.stringify(organization)
      bodies.set(principal, body)
    }
    return body
  }
}
