import { UUID_PATTERN } from '@workflow-service/contract/enumerations'
import type { Workflow } from '../../../client/src/index.ts'
import type { KeyContext } from '../cli-context.ts'
import { CliError } from '../cli-error.ts'
import { type CommandResult, listResult } from '../command-result.ts'
import { formatFacts, paint, showTime, withoutControls } from '../terminal.ts'

/** `wf workflows list` over the public API. */
export async function list(
  { client }: KeyContext,
  { search, limit }: { search?: string; limit: number },
): Promise<CommandResult> {
  const workflows: Workflow[] = []
  for await (const workflow of client.workflows.list({ limit: Math.min(limit, 100), ...(search && { search }) })) {
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
        value: (workflow) => whyNotStartable(workflow) ?? 'yes',
        colour: (workflow) => (whyNotStartable(workflow) === undefined ? 'green' : 'dim'),
      },
    ],
    'There is no such workflow. They are created in the application.',
  )
}

/** `wf workflows show WORKFLOW` over the public API. */
export async function show(ctx: KeyContext, given: string): Promise<CommandResult> {
  const workflow = await findWorkflow(ctx, given)
  const { id, name, description, triggers, files, users, auto_run: schedule, updated_at: changed } = workflow
  const facts: [string, string][] = [
    ['id', id],
    ['can start', whyNotStartable(workflow) ?? 'yes'],
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

/** Finds a workflow by its id or name; the case of a name matters only where it distinguishes two. @throws CliError */
export async function findWorkflow({ client }: KeyContext, given: string): Promise<Workflow> {
  if (UUID_PATTERN.test(given)) return await client.workflows.get(given)
  const found: Workflow[] = []
  for await (const workflow of client.workflows.list({ search: given, limit: 100 })) {
    if (workflow.name.toLowerCase() === given.toLowerCase()) found.push(workflow)
  }
  const exact = found.filter(({ name }) => name === given)
  const [only, ...others] = exact.length > 0 ? exact : found
  if (only && others.length === 0) return only
  if (only) {
    const ids = [only, ...others].map(({ id }) => `  ${id}`).join('\n')
    throw new CliError(`Several workflows are named ${given}. Choose one by its id:\n${ids}`)
  }
  throw new CliError(`There is no workflow ${given}. List them with wf workflows list.`)
}

/** Why the API would refuse a start (contract README, "Starts and sessions"); undefined if it would not. */
function whyNotStartable({ is_active: isActive, triggers, users }: Workflow): string | undefined {
  if (!isActive) return 'no: inactive'
  const hasTrigger = triggers.some((trigger) => trigger.is_active && trigger.trigger_source.slug === 'api')
  if (!hasTrigger) return 'no: no active api trigger'
  return users.length === 0 ? 'no: no users' : undefined
}
