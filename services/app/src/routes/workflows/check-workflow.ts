import {
  type FieldError,
  findFileSizeError,
  findJsonObjectErrors,
  findMediaError,
  findRulesNameError,
  findTimingErrors,
  isRulesFile,
} from '@workflow-service/contract'
import { listSourceStates, readAppFile, readExample, readWorkflowTexts } from '@workflow-service/database'
import { checkRules, checkWorkflow, type WorkflowCheck } from '@workflow-service/rules/check-workflow'
import type { AppServiceContext } from '../../app-service-context.ts'
import type { AppRequestOf, AppRules } from '../app-handlers.ts'

type CheckContext = Pick<AppServiceContext, 'db' | 'waitForTurn'>
type SourceState = Awaited<ReturnType<typeof listSourceStates>>[number]

const optionsFor = ({ db, waitForTurn }: CheckContext, organizationId: string) => ({
  waitForTurn: () => waitForTurn(organizationId),
  readExample: (source: SourceState) => readExample(db, organizationId, source),
})

/** Checks a workflow of the organization as the built-in agent reads it. The caller knows that the person sees it. */
export async function checkStoredWorkflow(
  ctx: CheckContext,
  organizationId: string,
  workflowId: string,
): Promise<WorkflowCheck<SourceState>> {
  const [texts] = await readWorkflowTexts(ctx.db, organizationId, [workflowId])
  const sources = await listSourceStates(ctx.db, organizationId)
  return await checkWorkflow(texts ?? { description: '', rules: null }, sources, optionsFor(ctx, organizationId))
}

/** Every error of rules that are not saved. */
export async function checkUnsavedRules(ctx: CheckContext, organizationId: string, content: string) {
  const sources = await listSourceStates(ctx.db, organizationId)
  const { errors, mismatches } = await checkRules(content, sources, optionsFor(ctx, organizationId))
  return [...errors, ...mismatches]
}

/** Checks the content of a file that is about to be saved, if its name is that of rules, a PDF or an image. */
export async function checkContent(
  ctx: CheckContext,
  { params, principal, body }: AppRequestOf<'saveFile'>,
): Promise<FieldError[]> {
  const { name, content } = body
  if (isRulesFile(body)) {
    const { organizationId } = principal
    const sources = await listSourceStates(ctx.db, organizationId)
    const { errors } = await checkRules(content, sources, { waitForTurn: () => ctx.waitForTurn(organizationId) })
    return errors.map(({ message }) => errorAt('content', message))
  }
  const message = findMediaError(name, content)
  if (message === undefined) return []
  const stored = await readAppFile(ctx.db, principal, params.workflow_id, params.file_id)
  return stored?.name === name && stored.content === content ? [] : [errorAt('content', message)]
}

/** Checks what the schemas cannot express, by the rules of a manifest (contract README, "Manifest"). */
export const workflowsRules = {
  saveTrigger: {
    body: ({ events = [], filters, subagent_sources = [] }) => {
      const slugs = events.map(({ slug }) => slug)
      const repeated = slugs.flatMap((slug, index) => (slugs.indexOf(slug) < index ? [index] : []))
      return [
        ...repeated.map((index) => errorAt(`events.${index}.slug`, 'is that of an earlier event')),
        ...(filters ? findJsonObjectErrors(filters, 'filters') : []),
        ...subagent_sources.flatMap(({ id, type }, index) => {
          const isInternal = type === 'platform_internal'
          if (isInternal === (id === null)) return []
          const message = isInternal ? 'must be null if the type is platform_internal' : 'must be the id of the source'
          return [errorAt(`subagent_sources.${index}.id`, message)]
        }),
      ]
    },
  },
  saveAutoRun: {
    body: ({ frequency = 'daily', timing }) => (timing ? findTimingErrors(frequency, timing) : []),
  },
  saveFile: {
    body: ({ name = '', path = [], content = '' }) => {
      // A manifest compares the whole paths of files.
      const names = [['name', name] as const, ...path.map((folder, index) => [`path.${index}`, folder] as const)]
      const errors = names
        .filter(([, text]) => text.includes('/'))
        .map(([field]) => errorAt(field, 'must not contain a slash: each folder is an entry of path'))
      const nameError = findRulesNameError({ name, path })
      if (nameError) errors.push(nameError)
      const sizeError = findFileSizeError(name, content)
      if (sizeError) errors.push({ field: 'content', code: 'too_large', message: sizeError })
      return errors
    },
  },
} satisfies AppRules

function errorAt(field: string, message: string): FieldError {
  return { field, code: 'value_error', message }
}
