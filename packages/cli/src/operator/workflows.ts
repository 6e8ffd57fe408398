import { findWorkflows, findWorkflowsByName, listWorkflows as listPositions } from '@workflow-service/database'
import type { Workflow } from '../../../client/src/index.ts'
import type { OrganizationContext } from '../cli-context.ts'
import type { CommandResult } from '../command-result.ts'
import { listWorkflows, showWorkflow, unknownWorkflow, type WorkflowReader } from '../workflows.ts'

/** Reads the documents of the public API from the database. */
export function workflowsOf({ db, organization }: OrganizationContext): WorkflowReader {
  const { id: organizationId, isSuspended } = organization
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
      let after: Awaited<ReturnType<typeof listPositions>>['workflows'][number] | undefined
      do {
        const page = await listPositions(db, { organizationId, memberId: null }, { ...params, after })
        yield* await read(page.workflows.map(({ id }) => id))
        after = page.hasMore ? page.workflows.at(-1) : undefined
      } while (after)
    },
    get: async (id) => {
      const [workflow] = await read([id])
      if (!workflow) throw unknownWorkflow(id)
      return workflow
    },
    named: (name) => findWorkflowsByName(db, organizationId, name),
  }
}

export async function list(
  ctx: OrganizationContext,
  options: { search?: string; limit: number },
): Promise<CommandResult> {
  return await listWorkflows(workflowsOf(ctx), options)
}

export async function show(ctx: OrganizationContext, given: string): Promise<CommandResult> {
  return await showWorkflow(workflowsOf(ctx), given)
}
