import { UUID_PATTERN } from '@workflow-service/contract'
import {
  type Database,
  findIdsByPrefix,
  findWorkflows,
  hasWebhookSourceLog,
  listOrganizations,
  listSourceStates,
  listWorkflows,
  normalizedName,
  type OrganizationName,
} from '@workflow-service/database'
import type { Workflow } from '../../../client/src/index.ts'
import type { OperatorContext, OrganizationContext } from '../cli-context.ts'
import { CliError } from '../cli-error.ts'
import { withoutControls } from '../terminal.ts'
import { findWorkflow, unknownWorkflow, type WorkflowReader } from '../workflows.ts'

/** How many candidates an error lists. One more is read, to know whether there are others. */
const MAX_LISTED = 10

/** Finds the given organization, or the only one. @throws CliError when none or several match. */
export async function findOrganization({ db }: OperatorContext, given: string | undefined): Promise<OrganizationName> {
  if (given === undefined) {
    const all = await listOrganizations(db, { limit: MAX_LISTED + 1 })
    if (all.length === 0) throw new CliError('There is no organization yet. Create one with wf apply FILE.')
    return chooseFrom(all, 'There are several organizations. Choose one with --organization ID.')
  }
  const found = UUID_PATTERN.test(given)
    ? await listOrganizations(db, { id: given.toLowerCase(), limit: 1 })
    : await listOrganizations(db, { name: given, limit: MAX_LISTED + 1 })
  if (found.length > 0) return chooseFrom(found, `Several organizations are named ${given}. Choose one by its id.`)
  throw new CliError(`There is no organization ${given}. List them with wf organizations list.`)
}

/** Opens the given organization, or the only one. @throws CliError when none or several match. */
export async function openOrganization(ctx: OperatorContext, given: string | undefined): Promise<OrganizationContext> {
  const organization = await findOrganization(ctx, given)
  return { ...ctx, organization, workflows: workflowsOf(ctx.db, organization) }
}

/** Reads the documents of the public API from the database. */
function workflowsOf(db: Database, { id: organizationId, isSuspended }: OrganizationName): WorkflowReader {
  const read = async (ids: readonly string[]): Promise<Workflow[]> => {
    const found = await findWorkflows(
      db,
      ids.map((workflowId) => ({ organizationId, workflowId })),
    )
    const documents = found.filter((each) => each !== null)
    return documents.map(
      ({ start, users, end }) => JSON.parse(`${start}${users?.json.toString() ?? ''}${end}`) as Workflow,
    )
  }
  return {
    isSuspended,
    async *list(params) {
      let after: Awaited<ReturnType<typeof listWorkflows>>['workflows'][number] | undefined
      do {
        const page = await listWorkflows(db, { organizationId, memberId: null }, { ...params, after })
        yield* await read(page.workflows.map(({ id }) => id))
        after = page.hasMore ? page.workflows.at(-1) : undefined
      } while (after)
    },
    get: async (id) => {
      const [workflow] = await read([id])
      if (!workflow) throw unknownWorkflow(id)
      return workflow
    },
  }
}

/** The id of the workflow of an option, if it is given. */
export async function findWorkflowId(ctx: OrganizationContext, given: string | undefined): Promise<string | undefined> {
  return given === undefined ? undefined : (await findWorkflow(ctx.workflows, given)).id
}

/**
 * Finds a webhook source of the organization by its name, ignoring case, or by its id. With `includeDeleted`, also
 * finds a deleted one that has a log, and names it by its id. @throws CliError
 */
export async function findSource(
  { db, organization }: OrganizationContext,
  given: string,
  { includeDeleted = false } = {},
): Promise<{ readonly id: string; readonly name: string }> {
  const id = given.toLowerCase()
  const sources = await listSourceStates(db, organization.id)
  const found = sources.find((source) => source.id === id || normalizedName(source.name) === normalizedName(given))
  if (found) return found
  if (UUID_PATTERN.test(given) && includeDeleted && (await hasWebhookSourceLog(db, organization.id, id))) {
    return { id, name: `deleted source ${given}` }
  }
  throw new CliError(`${organization.name} has no webhook source ${given}. List them with wf sources list.`)
}

/**
 * Returns the id of the run or session that begins with this prefix. A whole id is only looked up with an organization.
 * @throws CliError
 */
export async function findId(
  ctx: OperatorContext,
  what: 'run' | 'session',
  prefix: string,
  organization?: string,
): Promise<string> {
  if (UUID_PATTERN.test(prefix) && organization === undefined) return prefix
  const organizationId = organization === undefined ? null : (await findOrganization(ctx, organization)).id
  const table = what === 'run' ? 'starts' : 'sessions'
  const ids = await findIdsByPrefix(ctx.db, table, { prefix, organizationId }, MAX_LISTED + 1)
  if (ids.length === 0) {
    throw new CliError(`No ${what} has an id that begins with ${prefix}. List them with wf ${what}s list.`)
  }
  const candidates = ids.map((id) => ({ id, name: '' }))
  return chooseFrom(candidates, `Several ${what}s have an id that begins with ${prefix}:`).id
}

/** Returns the only candidate. @throws CliError with the message and the candidates, if there are several. */
function chooseFrom<Candidate extends { readonly id: string; readonly name: string }>(
  candidates: readonly Candidate[],
  message: string,
): Candidate {
  const [only, ...others] = candidates
  if (only && others.length === 0) return only
  const lines = candidates.slice(0, MAX_LISTED).map(({ id, name }) => withoutControls(`  ${id}  ${name}`.trimEnd()))
  throw new CliError([message, ...lines, ...(candidates.length > MAX_LISTED ? ['  …'] : [])].join('\n'))
}
