import { type FieldError, findMediaError, isRulesFile, type SaveFileIn } from '@workflow-service/contract'
import { listSourceStates, readAppFile, readWorkflowTexts } from '@workflow-service/database'
import { checkRules, checkWorkflow, type WorkflowCheck } from '@workflow-service/rules/check-workflow'
import type { AppServiceContext } from '../../app-service-context.ts'
import type { AppRequestOf } from '../app-handlers.ts'

type CheckContext = Pick<AppServiceContext, 'db' | 'waitForTurn'>
type SourceState = Awaited<ReturnType<typeof listSourceStates>>[number]

/** Checks a workflow of the organization as the built-in agent reads it. The caller knows that the person sees it. */
export async function checkStoredWorkflow(
  { db, waitForTurn }: CheckContext,
  organizationId: string,
  workflowId: string,
): Promise<WorkflowCheck<SourceState>> {
  const [texts] = await readWorkflowTexts(db, organizationId, [workflowId])
  const sources = await listSourceStates(db, organizationId)
  return await checkWorkflow(texts ?? { description: '', rules: null }, sources, () => waitForTurn(organizationId))
}

/** Every error of rules that are not saved. */
export async function checkUnsavedRules({ db, waitForTurn }: CheckContext, organizationId: string, content: string) {
  const sources = await listSourceStates(db, organizationId)
  const { errors } = await checkRules(content, sources, () => waitForTurn(organizationId))
  return errors
}

/** Checks the content of a file that is about to be saved, if it is a `rules.yaml`. */
export async function checkRulesFile(
  ctx: CheckContext,
  organizationId: string,
  file: SaveFileIn,
): Promise<FieldError[]> {
  if (!isRulesFile(file)) return []
  const errors = await checkUnsavedRules(ctx, organizationId, file.content)
  return errors.map(({ message }) => ({ field: 'content', code: 'value_error', message }))
}

/** Checks the content of a file that is about to be saved, if its name is that of a PDF or an image. */
export async function checkMediaFile(
  { db }: CheckContext,
  { params, principal, body: { name, content } }: AppRequestOf<'saveFile'>,
): Promise<FieldError[]> {
  const message = findMediaError(name, content)
  if (message === undefined) return []
  const stored = await readAppFile(db, principal, params.workflow_id, params.file_id)
  if (stored?.name === name && stored.content === content) return []
  return [{ field: 'content', code: 'value_error', message }]
}
