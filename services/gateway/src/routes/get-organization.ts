import type { OrganizationOut } from '@workflow-service/contract'
import type { Principal } from '@workflow-service/database'
import type { PublicApiHandlers } from './operation-handlers.ts'

/**
 * `GET /v1/organization` (contract README, "Public API"). The data was read with the API key, so it is at most as old
 * as the key's cache entry; the JSON is made once per entry.
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
