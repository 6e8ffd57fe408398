import { isName, NAME_MAX_LENGTH } from '@workflow-service/contract'
import {
  createOrganization,
  deleteOrganization,
  deleteOrganizationRows,
  listOrganizations,
  operatorOf,
  type OrganizationName,
  setOrganizationSuspended,
} from '@workflow-service/database'
import { type CommandResult, listResult } from '../command-result.ts'
import type { OperatorContext } from '../cli-context.ts'
import { CliError, UsageError } from '../cli-error.ts'
import { confirm } from './confirm.ts'
import { findOrganization } from './find.ts'

export async function create(ctx: OperatorContext, given: string): Promise<CommandResult> {
  const name = toNewName(given)
  const [existing] = await listOrganizations(ctx.db, { name, limit: 1 })
  if (existing) throw new CliError(`There is an organization ${name} already (${existing.id}). Choose another name.`)
  const organization = await createOrganization(ctx.db, name)
  return {
    json: toJson(organization),
    text: () =>
      `${name} (${organization.id}) is created. Make the link for its first owner: wf setup-link ${organization.id}\n`,
  }
}

/** @throws UsageError if it can name no organization. */
export function toNewName(given: string): string {
  const name = given.trim()
  if (name === '' || !isName(name) || Array.from(name).length > NAME_MAX_LENGTH) {
    throw new UsageError(`The name must have 1 to ${NAME_MAX_LENGTH} characters, one of them visible.`)
  }
  return name
}

/** More than any installation has. */
const MAX_ORGANIZATIONS = 100_000

export async function list(ctx: OperatorContext): Promise<CommandResult> {
  const organizations = await listOrganizations(ctx.db, { limit: MAX_ORGANIZATIONS })
  return listResult(
    organizations,
    [
      { title: 'ID', value: ({ id }) => id, cut: 'id' },
      {
        title: 'STATE',
        value: ({ isSuspended }) => (isSuspended ? 'suspended' : 'active'),
        colour: ({ isSuspended }) => (isSuspended ? 'yellow' : 'green'),
      },
      { title: 'NAME', value: ({ name }) => name },
    ],
    'There are no organizations. Create one with wf organizations create NAME, or with wf apply FILE.',
    toJson,
  )
}

export async function suspend(ctx: OperatorContext, given: string): Promise<CommandResult> {
  return await setSuspended(ctx, given, true)
}

export async function resume(ctx: OperatorContext, given: string): Promise<CommandResult> {
  return await setSuspended(ctx, given, false)
}

async function setSuspended(ctx: OperatorContext, given: string, isSuspended: boolean): Promise<CommandResult> {
  const organization = await findOrganization(ctx, given)
  const isChanged = await setOrganizationSuspended(ctx.db, organization.id, isSuspended)
  const state = isSuspended ? 'suspended' : 'active'
  return {
    json: toJson({ ...organization, isSuspended }),
    text: () => `${organization.name} is ${isChanged ? '' : 'already '}${state}.\n`,
  }
}

export async function remove(ctx: OperatorContext, given: string, options: { yes?: boolean }): Promise<CommandResult> {
  const organization = await findOrganization(ctx, given)
  const { id, name } = organization
  const what = `This deletes ${name} (${id}) with everything in it.`
  await confirm(ctx, options, { what, word: name, asked: 'its name', refusal: 'Nothing was deleted.' })
  await deleteOrganization(ctx.db, operatorOf(id))
  // From here on it is gone for everyone; if this is interrupted, the application deletes the rest.
  while (await deleteOrganizationRows(ctx.db, id)) continue
  return { json: toJson(organization), text: () => `${name} (${id}) is deleted.\n` }
}

function toJson({ id, name, isSuspended }: OrganizationName): object {
  return { id, name, suspended: isSuspended }
}
