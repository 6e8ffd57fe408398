import { draftRules, type Refusal, selectDraftSources } from '@workflow-service/contract'
import type { Db } from '../connection/index.ts'
import { listSourceNames, readSources } from '../sources/index.ts'
import { readWorkflowTexts } from '../workflows/index.ts'

/**
 * Drafts the `rules.yaml` that a refusal of a workflow's run calls for, with the organization's webhook sources as they
 * are now. Undefined if the workflow was deleted.
 */
export async function draftRunRules(
  db: Db,
  organizationId: string,
  workflowId: string,
  refusal: Refusal,
): Promise<string | undefined> {
  const [workflow] = await readWorkflowTexts(db, organizationId, [workflowId])
  if (!workflow) return undefined
  const selected = selectDraftSources(refusal, workflow.description, await listSourceNames(db, organizationId))
  const sources = await readSources(
    db,
    organizationId,
    selected.map(({ id }) => id),
  )
  return draftRules(
    refusal,
    sources.map(({ name, exampleRequestBody }) => ({ name, example_request_body: exampleRequestBody })),
  )
}
