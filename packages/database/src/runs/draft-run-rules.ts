import { draftRules, selectDraftSources, toRefusedRun } from '@workflow-service/contract'
import type { Db } from '../connection/index.ts'
import { listSourceNames, readSources } from '../sources/index.ts'
import { readWorkflowTexts } from '../workflows/index.ts'

/** What a draft is made of: the run's error and its journal. */
interface RunToDraftFor {
  readonly workflowId: string
  readonly error: string | null
  readonly steps: readonly { readonly kind: string; readonly data: unknown }[]
}

/**
 * Drafts the `rules.yaml` that a run of the organization needs, with its webhook sources as they are now. Undefined if
 * the built-in agent did not refuse the run, or its workflow was deleted.
 */
export async function draftRunRules(
  db: Db,
  organizationId: string,
  { workflowId, error, steps }: RunToDraftFor,
): Promise<string | undefined> {
  const [workflow] = await readWorkflowTexts(db, organizationId, [workflowId])
  const run = workflow && toRefusedRun({ error, steps, description: workflow.description })
  if (!run) return undefined
  const selected = selectDraftSources(run, await listSourceNames(db, organizationId))
  const sources = await readSources(
    db,
    organizationId,
    selected.map(({ id }) => id),
  )
  return draftRules(
    run,
    sources.map(({ name, exampleRequestBody }) => ({ name, example_request_body: exampleRequestBody })),
  )
}
