import { type FieldError, isRulesFile, type SaveFileIn } from '@workflow-service/contract'
import { listSourceStates, readWorkflowTexts } from '@workflow-service/database'
import { checkRules, checkWorkflow, type WorkflowCheck } from '@workflow-service/rules/check-workflow'
import type { AppServiceContext } from '../../app-service-context.ts'

type SourceState = Awaited<ReturnType<typeof listSourceStates>>[number]

/** Checks a workflow of the organization as the built-in agent reads it. The caller knows that the person sees it. */
export async function checkStoredWorkflow(
  { db }: Pick<AppServiceContext, 'db'>,
  organizationId: string,
  workflowId: string,
): Promise<WorkflowCheck<SourceState>> {
  const [texts] = await readWorkflowTexts(db, organizationId, [workflowId])
  const sources = await listSourceStates(db, organizationId)
  return await checkWorkflow(texts ?? { description: '', rules: null }, sources)
}

/** Checks the content of a file that is about to be saved, if it is a `rules.yaml`. */
export async function checkRulesFile(
  { db }: Pick<AppServiceContext, 'db'>,
  organizationId: string,
  file: SaveFileIn,
): Promise<FieldError[]> {
  if (!isRulesFile(file)) return []
  const { errors } = await checkRules(file.content, await listSourceStates(db, organizationId))
  return errors.map(({ message }) => ({ field: 'content', code: 'value_error', message }))
}
