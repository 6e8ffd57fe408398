import { LINK_HOURS } from '@workflow-service/contract'
import { createSetupLink, listOrganizations } from '@workflow-service/database'
import type { CommandResult } from '../command-result.ts'
import type { OperatorContext } from '../cli-context.ts'
import { findOrganization } from './find.ts'
import { paint } from '../terminal.ts'

/** `wf setup-link [ORGANIZATION]` */
export async function setupLink(
  ctx: OperatorContext,
  { organization: given }: { organization?: string },
): Promise<CommandResult> {
  const appUrl = ctx.config.appUrl()
  const isFirst = given === undefined && (await listOrganizations(ctx.db, { limit: 1 })).length === 0
  const organization = isFirst ? undefined : await findOrganization(ctx, given)
  const token = await createSetupLink(ctx.db, organization?.id ?? null)
  const url = `${new URL(appUrl).origin}/setup#${token}`
  const expiresAt = new Date(Date.now() + LINK_HOURS.setup * 3_600_000)
  const what = organization ? `an owner of ${organization.name}` : 'the owner of a new organization'
  return {
    json: { url, organization_id: organization?.id ?? null, expires_at: expiresAt },
    text: (terminal) =>
      `${paint(terminal, 'bold', url)}\n${paint(terminal, 'dim', `Makes the person who opens it ${what}. Works once, for ${LINK_HOURS.setup} hours.`)}\n`,
  }
}
