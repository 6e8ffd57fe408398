import { UUID_PATTERN } from '@workflow-service/contract/enumerations'
import { SEARCH_MAX_LENGTH } from '@workflow-service/contract/limits'
import type { Workflow } from '../../client/src/index.ts'
import { CliError } from './cli-error.ts'
import { type CommandResult, listResult } from './command-result.ts'
import { formatFacts, paint, showTime, type Terminal, withoutControls } from './terminal.ts'

/** Reads the workflows of an organization: from the public API, or from the database. */
export interface WorkflowReader {
  /** Whether their organization is suspended; the API answers then with 403 in place of workflows. */
  readonly isSuspended: boolean
  /** Lists them oldest first, with a search those whose name or description has the text, in pages of the limit. */
  list(params: { search?: string; limit: number }): AsyncIterable<Workflow>
  /** @throws CliError or ApiError if there is none with the id. */
  get(id: string): Promise<Workflow>
}

const PAGE_SIZE = 100

interface WorkflowsContext {
  readonly workflows: WorkflowReader
}

/** `wf workflows list` */
export async function list(
  { workflows: reader }: WorkflowsContext,
  { search, limit }: { search?: string; limit: number },
): Promise<CommandResult> {
  const workflows: Workflow[] = []
  for await (const workflow of reader.list({ limit: Math.min(limit, PAGE_SIZE), ...(search && { search }) })) {
    workflows.push(workflow)
    if (workflows.length === limit) break
  }
  return listResult(
    workflows,
    [
      { title: 'NAME', value: ({ name }) => name, cut: 'name' },
      { title: 'ID', value: ({ id }) => id, cut: 'id' },
      {
        title: 'CAN START',
        value: (workflow) => whyNotStartable(reader, workflow) ?? 'yes',
        colour: (workflow) => (whyNotStartable(reader, workflow) === undefined ? 'green' : 'dim'),
      },
    ],
    'There is no such workflow. They are created in the application, or with wf apply.',
  )
}

/** `wf workflows show WORKFLOW` */
export async function show({ workflows: reader }: WorkflowsContext, given: string): Promise<CommandResult> {
  const workflow = await findWorkflow(reader, given)
  const { id, name, description, triggers, files, users, auto_run: schedule, updated_at: changed } = workflow
  const facts: [string, string][] = [
    ['id', id],
    ['can start', whyNotStartable(reader, workflow) ?? 'yes'],
    ['schedule', schedule.enabled ? (schedule.frequency ?? 'on') : 'none'],
    [
      'triggers',
      triggers.map(({ trigger_source: { slug }, is_active: on }) => (on ? slug : `${slug} (paused)`)).join(),
    ],
    ['users', users.map(({ email }) => email).join(', ')],
    ['files', files.map((file) => [...file.path, file.name].join('/')).join(', ')],
    ['changed', `${showTime(changed)} UTC`],
  ]
  const lines = description.split('\n').map((line) => `  ${withoutControls(line)}`.trimEnd())
  return {
    json: workflow,
    text: (terminal) =>
      `${paint(terminal, 'bold', withoutControls(name))}\n${formatFacts(terminal, facts)}\n${lines.join('\n')}\n`,
  }
}

/** Folds case as the search does: ß and ẞ become SS. */
const foldCase = (name: string) => name.toLowerCase().toUpperCase()

/** Finds a workflow by its id or name; the case of a name matters only where it distinguishes two. @throws CliError */
export async function findWorkflow(reader: WorkflowReader, given: string): Promise<Workflow> {
  if (UUID_PATTERN.test(given)) return await reader.get(given.toLowerCase())
  const found: Workflow[] = []
  // A name may be longer than what the API searches.
  const search = Array.from(given).slice(0, SEARCH_MAX_LENGTH).join('')
  for await (const workflow of reader.list({ search, limit: PAGE_SIZE })) {
    if (foldCase(workflow.name) === foldCase(given)) found.push(workflow)
  }
  const exact = found.filter(({ name }) => name === given)
  const [only, ...others] = exact.length > 0 ? exact : found
  if (!only) throw unknownWorkflow(given)
  if (others.length === 0) return only
  const ids = [only, ...others].map(({ id }) => `  ${id}`).join('\n')
  throw new CliError(`Several workflows are named ${given}. Choose one by its id:\n${ids}`)
}

/** The result of a start that was accepted. */
export function startResult(
  started: { readonly id: string; readonly session_id: string },
  name: string,
): CommandResult {
  const { id, session_id: sessionId } = started
  const next = `See how it goes: wf runs show ${id} --follow`
  return { json: started, text: () => `Run ${id} of ${name} is accepted, in session ${sessionId}. ${next}\n` }
}

/** Follows the run of a start, and names it if that fails: after the error alone, the start would be repeated. */
export async function followStarted<Result>(
  { terminal }: { readonly terminal: Terminal },
  accepted: CommandResult,
  follow: () => Promise<Result>,
): Promise<Result> {
  try {
    return await follow()
  } catch (error) {
    terminal.writeError(accepted.text(terminal))
    throw error
  }
}

export function unknownWorkflow(given: string): CliError {
  return new CliError(`There is no workflow ${given}. List them with wf workflows list.`)
}

/** Why the API would refuse a start (contract README, "Starts and sessions"); undefined if it would not. */
function whyNotStartable(
  { isSuspended }: Pick<WorkflowReader, 'isSuspended'>,
  { is_active: isActive, triggers, users }: Workflow,
): string | undefined {
  if (isSuspended) return 'no: the organization is suspended'
  if (!isActive) return 'no: inactive'
  const hasTrigger = triggers.some((trigger) => trigger.is_active && trigger.trigger_source.slug === 'api')
  if (!hasTrigger) return 'no: no active api trigger'
  return users.length === 0 ? 'no: no users' : undefined
}
