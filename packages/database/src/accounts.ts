import type { Role } from '@workflow-service/contract'
import type { Database } from './client.ts'

/** An organization in which a person has a role. */
export interface Membership {
  readonly id: string
  readonly name: string
  readonly isSuspended: boolean
  readonly role: Role
}

/** What the person may see of the own account. */
export interface MyAccount {
  readonly account: { readonly hasPassword: boolean; readonly hasOidc: boolean } | undefined
  /** By name. */
  readonly organizations: readonly Membership[]
}

/** Reads the account of a person and the organizations in which the person has a role. */
export async function readMe(db: Pick<Database, 'pool'>, accountId: string): Promise<MyAccount> {
  const { rows: accounts } = await db.pool.query<{ hasPassword: boolean; hasOidc: boolean }>(
    `SELECT password_hash IS NOT NULL AS "hasPassword", oidc_subject IS NOT NULL AS "hasOidc" FROM accounts WHERE id = $1`,
    [accountId],
  )
  const { rows: organizations } = await db.pool.query<Membership>(
    `SELECT o.id, o.name, o.is_suspended AS "isSuspended", u.role
     FROM users u JOIN organizations o ON o.id = u.organization_id
     WHERE u.account_id = $1 AND u.role IS NOT NULL AND u.deactivated_at IS NULL
     ORDER BY o.name, o.id`,
    [accountId],
  )
  return { account: accounts[0], organizations }
}
