import type { OrganizationOut } from '@workflow-service/contract'
import type { Principal } from '@workflow-service/database'
import type { OperationHandlers } from '../mount-operations.ts'

/**
 * `GET /v1/organization` (contract 4.1): what was looked up with the key, hence at most as old as the key's entry in the
 * cache. The text is made once for each entry.
 */
export function getOrganization(): OperationHandlers['getOrganization'] {
  const bodies = new WeakMap<Principal, string>()
  return ({ holder }) => {
    let body = bodies.get(holder)
    if (!body) {
      const organization: OrganizationOut = { id: holder.organizationId, name: holder.organizationName }
      body = JSON.stringify(organization)
      bodies.set(holder, body)
    }
    return body
  }
}
