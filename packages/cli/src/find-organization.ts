import { UUID_PATTERN } from '@workflow-service/contract'
import { findOrganizations, listOrganizations, type OrganizationName } from '@workflow-service/database'
import type { Command } from 'commander'
import type { CliContext } from './cli-context.ts'
import { Refusal } from './refusal.ts'

const SHOWN = 10

/** Adds `--organization`. */
export function withOrganization(command: Command): Command {
  return command.option('--organization <id>', 'the organization, by id or name; needless while there is only one')
}

/** The organization that is meant: the one given, or the only one. @throws Refusal when that is not one. */
export async function findOrganization(ctx: CliContext, given: string | undefined): Promise<OrganizationName> {
  const db = ctx.database()
  if (given === undefined) {
    const all = await listOrganizations(db, { limit: SHOWN + 1 })
    if (all.length === 0) throw new Refusal('There is no organization yet: wf apply FILE makes one.')
    return theOnlyOne(all, 'There are several organizations: say which one with --organization ID.')
  }
  const found = UUID_PATTERN.test(given)
    ? await findOrganizations(db, { id: given.toLowerCase() }, { limit: 1 })
    : await findOrganizations(db, { name: given }, { limit: SHOWN + 1 })
  if (found.length === 0) throw new Refusal(`There is no organization ${given}.`)
  return theOnlyOne(found, `Several organizations are named ${given}: say which one by its id.`)
}

function theOnlyOne(found: readonly OrganizationName[], otherwise: string): OrganizationName {
  const [only, ...others] = found
  if (only && others.length === 0) return only
  const lines = found.slice(0, SHOWN).map(({ id, name }) => `  ${id}  ${name}`)
  if (found.length > SHOWN) lines.push('  …')
  throw new Refusal(`${otherwise}\n${lines.join('\n')}`)
}
