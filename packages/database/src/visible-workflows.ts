import type { Role } from '@workflow-service/contract'

/** The user whose workflows a person sees; null for admins and owners, who see all of the organization. */
export function viewerOf({ role, userId }: { readonly role: Role; readonly userId: string }): string | null {
  return role === 'member' ? userId : null
}

/**
 * The SQL condition under which a person sees a workflow: a member those that are `company_wide` or list the member. `workflow`
 * is the alias of the table, `viewer` the parameter with the result of `viewerOf`. A deleted workflow is visible to nobody.
 * LIMIT 1 instead of EXISTS, which PostgreSQL may evaluate by reading all workflows of the user.
 */
export function isVisible(workflow: string, viewer: string): string {
  return `(${workflow}.deleted_at IS NULL AND (${viewer}::uuid IS NULL OR ${workflow}.scope = 'company_wide'
    OR (SELECT true FROM workflow_users WHERE workflow_id = ${workflow}.id AND user_id = ${viewer}::uuid LIMIT 1)))`
}
