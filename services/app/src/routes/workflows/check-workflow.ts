import { type FieldError, findMediaError, isRulesFile } from '@workflow-service/contract'
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

/** Checks the content of a file that is about to be saved, if its name is that of rules, a PDF or an image. */
export async function checkContent(
  ctx: CheckContext,
  { params, principal, body }: AppRequestOf<'saveFile'>,
): Promise<FieldError[]> {
  const { name, content } = body
  if (isRulesFile(body)) return (await checkUnsavedRules(ctx, principal.organizationId, content)).map(refuseContent)
  const message = findMediaError(name, content)
  if (message === undefined) return []
  const stored = await readAppFile(ctx.db, principal, params.workflow_id, params.file_id)
  return stored?.name === name && stored.content === content ? [] : [refuseContent({ message })]
}

function refuseContent({ message }: { readonly message: string }): FieldError {
  return { field: 'content', code: 'value_error', message }
}
