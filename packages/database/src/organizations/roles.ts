import { type Role, ROLES } from '@workflow-service/contract'
import type { Queryable } from '../connection/index.ts'

/** Who changes an organization: the person of a request, as the audit log names the person, or the operator. */
export interface AuditPrincipal {
  readonly organizationId: string
  /** Null: the operator. */
  readonly userId: string | null
  readonly name: string
  readonly address: string | null
  /** The role as which the person is allowed the change. Absent: it needs none, as of the person's own account. */
  readonly allowedAs?: Role
}

/** A change of a person who has a lower role now than the change was allowed with. Nothing was written. */
export class RoleLostError extends Error {
  override name = 'RoleLostError'
}

/**
 * Refuses a change of a person whose role was taken away while it waited for an endpoint or a lock. Called after that,
 * in the transaction of the change: `recordAuditEvent` does so.
 * @throws RoleLostError
 */
export async function assertRole(
  client: Queryable,
  { organizationId, userId, allowedAs }: AuditPrincipal,
): Promise<void> {
  if (userId === null || !allowedAs) return
  const { rowCount } = await client.query(
    'SELECT FROM users WHERE organization_id = $1 AND id = $2 AND role = ANY ($3) AND deactivated_at IS NULL',
    [organizationId, userId, ROLES.slice(0, ROLES.indexOf(allowedAs) + 1)],
  )
  if (rowCount === 0) throw new RoleLostError('Your role in the organization does not allow this.')
}
