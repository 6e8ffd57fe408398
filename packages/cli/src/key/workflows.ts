import type { Workflow } from '../../../client/src/index.ts'
import type { KeyContext } from '../cli-context.ts'
import type { CommandResult } from '../command-result.ts'
import { listWorkflows, showWorkflow, type WorkflowReader } from '../workflows.ts'

/** Reads workflows over the public API. */
export function workflowsOf({ client: { workflows } }: KeyContext): WorkflowReader {
  return {
    isSuspended: false,
    list: (params) => workflows.list(params),
    get: (id) => workflows.get(id),
    named: async (name) => {
      const found: Workflow[] = []
      for await (const each of workflows.list({ search: name, limit: 100 })) {
        if (each.name.toLowerCase() === name.toLowerCase()) found.push(each)
      }
      return found
    },
  }
}

export async function list(ctx: KeyContext, options: { search?: string; limit: number }): Promise<CommandResult> {
  return await listWorkflows(workflowsOf(ctx), options)
}

export async function show(ctx: KeyContext, given: string): Promise<CommandResult> {
  return await showWorkflow(workflowsOf(ctx), given)
}
