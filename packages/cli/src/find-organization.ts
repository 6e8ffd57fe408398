import { findSimilar, UUID_PATTERN } from '@workflow-service/contract'
import { findOrganizations, listOrganizations, type OrganizationName } from '@workflow-service/database'
import type { Command } from 'commander'
import { chooseFrom } from './choose-from.ts'
import type { CliContext } from './cli-context.ts'
import { CliError } from './cli-error.ts'

/** How many candidates are listed, and one more to know whether there are others. */
const MAX_FOUND = 11
/** How many names a misspelled one is compared with. */
const MAX_COMPARED = 1_000

/** Adds `--organization`. */
export function withOrganization(command: Command): Command {
  return command.option('--organization <organization>', 'its id or name; not needed if there is only one')
}

/** Finds the given organization, or the only one. @throws CliError when none or several match. */
export async function findOrganization(ctx: CliContext, given: string | undefined): Promise<OrganizationName> {
  const db = ctx.database()
  if (given === undefined) {
    const all = await listOrganizations(db, { limit: MAX_FOUND })
    if (all.length === 0) throw new CliError('There is no organization yet. Create one with wf apply FILE.')
    return chooseFrom(all, 'There are several organizations. Choose one with --organization ID.')
  }
  const found = UUID_PATTERN.test(given)
    ? await findOrganizations(db, { id: given.toLowerCase() }, { limit: 1 })
    : await findOrganizations(db, { name: given }, { limit: MAX_FOUND })
  if (found.length > 0) return chooseFrom(found, `Several organizations are named ${given}. Choose one by its id.`)
  const known = await listOrganizations(db, { limit: MAX_COMPARED })
  const similar = findSimilar(
    given,
    known.map(({ name }) => name),
  )
  const advice = similar === undefined ? '' : ` Did you mean ${JSON.stringify(similar)}?`
  throw new CliError(`There is no organization ${given}.${advice}`)
}
