import { writeManifest } from '@workflow-service/database/manifest'
import { argument, command, option } from '../cli-command.ts'
import type { CliContext } from '../cli-context.ts'
import { CliError } from '../cli-error.ts'
import { findOrganization, findWorkflowId } from '../find.ts'

const HELP = `
It has the organization, its users, webhook sources and workflows with their ids, in YAML, or in JSON with --json. It does not
have API keys, signing secrets, sessions, the roles of people, runs and logs; applying it keeps those. Elsewhere, it makes a copy
with the same ids: first remove the ids, and give each webhook source its signing_secret.
`

/** `wf export [ORGANIZATION]` */
export const exportCommand = command(
  'export',
  'Print an organization as a manifest that changes nothing when it is applied.',
  exportOrganization,
  [
    argument('[organization]', 'its id or name; not needed if there is only one'),
    option('--workflow <workflow>', 'only this workflow, by id or name, with the users that it lists'),
  ],
  HELP,
)

interface Options {
  readonly workflow?: string
  readonly json?: boolean
}

async function exportOrganization(ctx: CliContext, given: string | undefined, options: Options): Promise<undefined> {
  const organization = await findOrganization(ctx, given)
  const { workflow, json: isJson = false } = options
  const workflowId = await findWorkflowId(ctx, organization, workflow)
  const isFound = await writeManifest(
    ctx.database(),
    organization.id,
    { format: isJson ? 'json' : 'yaml', workflowId },
    ctx.terminal.write,
  )
  if (!isFound) throw new CliError(`${organization.name} has no workflow ${workflow}.`)
}
