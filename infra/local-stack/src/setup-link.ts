import { createSetupLink, type Database } from '@workflow-service/database'

/** Makes a one-time link with which its reader becomes the owner of the organization; undefined if it has an owner. */
export async function makeSetupLink(
  db: Database,
  organization: { readonly id: string; readonly name: string },
  appUrl: string,
): Promise<{ url: string; organizationName: string } | undefined> {
  const { rowCount } = await db.pool.query(
    `SELECT FROM users WHERE organization_id = $1 AND role = 'owner' AND account_id IS NOT NULL LIMIT 1`,
    [organization.id],
  )
  if (rowCount !== 0) return undefined
  const token = await createSetupLink(db, organization.id)
  return { url: `${appUrl}/setup#${token}`, organizationName: organization.name }
}
