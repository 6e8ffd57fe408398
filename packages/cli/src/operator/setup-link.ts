import { createSetupLink, LINK_HOURS, listOrganizations } from '@workflow-service/database'
import { argument, command, type CommandResult } from '../cli-command.ts'
import type { CliContext } from '../cli-context.ts'
import { findOrganization } from '../find.ts'
import { paint } from '../terminal.ts'

const HELP = `
The link works once, for ${LINK_HOURS.setup} hours, and replaces an earlier one. The person who opens it becomes an owner of the organization: do not pass it on.
`

/** `wf setup-link [ORGANIZATION]` */
export const setupLinkCommand = command(
  'setup-link',
  'Make a link with which a person becomes an owner.',
  setupLink,
  [argument('[organization]', 'its id or name (default: the only one; without any, the link creates one)')],
  HELP,
)

async function setupLink(ctx: CliContext, given: string | undefined): Promise<CommandResult> {
  const appUrl = ctx.config.appUrl()
  const isFirst = given === undefined && (await listOrganizations(ctx.database(), { limit: 1 })).length === 0
  const organization = isFirst ? undefined : await findOrganization(ctx, given)
  const token = await createSetupLink(ctx.database(), organization?.id ?? null)
  const url = `${new URL(appUrl).origin}/setup#${token}`
  const expiresAt = new Date(Date.now() + LINK_HOURS.setup * 3_600_000)
  const what = organization ? `an owner of ${organization.name}` : 'the owner of a new organization'
  return {
    json: { url, organization_id: organization?.id ?? null, expires_at: expiresAt },
    text: (terminal) =>
      `${paint(terminal, 'bold', url)}\n${paint(terminal, 'dim', `Makes the person who opens it ${what}. Works once, for ${LINK_HOURS.setup} hours.`)}\n`,
  }
}
