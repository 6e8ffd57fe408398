import { UUID_PATTERN } from '@workflow-service/contract'
import {
  findWorkflowsByName,
  listWorkflowNames,
  type OrganizationName,
  type WorkflowName,
} from '@workflow-service/database'
import type { CliContext } from './cli-context.ts'
import { CliError } from './cli-error.ts'
import { chooseFrom, listKnown } from './choose-from.ts'

/** How many candidates are listed, and one more to know whether there are others. */
const MAX_FOUND = 11
/** How many names a misspelled one is compared with. */
const MAX_COMPARED = 1_000

/** Finds a workflow of the organization by its id or name; the case of a name matters only where it distinguishes two. @throws CliError */
export async function findWorkflow(
  ctx: CliContext,
  organization: OrganizationName,
  given: string,
): Promise<WorkflowName> {
  const db = ctx.database()
  const isId = UUID_PATTERN.test(given)
  const wanted = isId ? { id: given.toLowerCase() } : { name: given }
  const found = await findWorkflowsByName(db, organization.id, wanted, MAX_FOUND)
  if (found.length > 0) return chooseFrom(found, `Several workflows are named ${given}. Choose one by its id.`)
  if (isId) throw new CliError(`${organization.name} has no workflow ${given}.`)
  const known = await listWorkflowNames(db, organization.id, MAX_COMPARED)
  throw new CliError(
    `${organization.name} has no workflow ${JSON.stringify(given)}.${listKnown(
      given,
      known.map(({ name }) => name),
    )}`,
  )
}

/** The id of the workflow of an option, if it is given. */
export async function findWorkflowId(
  ctx: CliContext,
  organization: OrganizationName,
  given: string | undefined,
): Promise<string | undefined> {
  return given === undefined ? undefined : (await findWorkflow(ctx, organization, given)).id
}
