import { UUID_PATTERN } from '@workflow-service/contract'
import { findOrganizations, listOrganizations, type OrganizationName } from '@workflow-service/database'
import type { Command } from 'commander'
import type { CliContext } from './cli-context.ts'
import { CliError } from './cli-error.ts'

const MAX_LISTED = 10

/** Adds `--organization`. */
export function withOrganization(command: Command): Command {
  return command.option('--organization <id>', 'the organization, by id or name; not needed if there is only one')
}

/** Finds the given organization, or the only one. @throws CliError when none or several match. */
export async function findOrganization(ctx: CliContext, given: string | undefined): Promise<OrganizationName> {
  const db = ctx.database()
  if (given === undefined) {
    const all = await listOrganizations(db, { limit: MAX_LISTED + 1 })
    if (all.length === 0) throw new CliError('There is no organization yet. Create one with wf apply FILE.')
    return singleOf(all, 'There are several organizations. Choose one with --organization ID.')
  }
  const found = UUID_PATTERN.test(given)
    ? await findOrganizations(db, { id: given.toLowerCase() }, { limit: 1 })
    : await findOrganizations(db, { name: given }, { limit: MAX_LISTED + 1 })
  if (found.length === 0) throw new CliError(`There is no organization ${given}.`)
  return singleOf(found, `Several organizations are named ${given}. Choose one by its id.`)
}

function singleOf(found: readonly OrganizationName[], message: string): OrganizationName {
  const [only, ...others] = found
  if (only && others.length === 0) return only
  const lines = found.slice(0, MAX_LISTED).map(({ id, name }) => `  ${id}  ${name}`)
  if (found.length > MAX_LISTED) lines.push('  …')
  throw new CliError(`${message}\n${lines.join('\n')}`)
}
