import {
  findWorkflowNames,
  listApiKeys,
  listOrganizations,
  listRuns,
  listSessionRows,
  listUsers,
  listWebhookSources,
  listWorkflowNames,
} from '@workflow-service/database'
import type { Argument, Command, Option } from 'commander'
import type { CliContext } from './cli-context.ts'
import { findOrganization } from './find.ts'
import { showTime } from './terminal.ts'

/** A word that may come next. */
export interface Candidate {
  readonly value: string
  readonly description: string
}

/** A person waits for a key press: names that take longer are left out. */
const NAMES_TIMEOUT_MS = 2_000
const MAX_NAMES = 200
const MAX_IDS = 20

/**
 * Creates a function that returns what the last of the words after `wf` can be: commands, options, choices, or names
 * from the database. It never rejects: without a database there are no names.
 */
export function createCompletion(
  program: Command,
  ctx: CliContext,
): (words: readonly string[]) => Promise<Candidate[]> {
  return async (words) => {
    const typed = words.at(-1) ?? ''
    const position = walk(program, words.slice(0, -1))
    const found = listStatic(position, typed) ?? (await listNamesInTime(ctx, position))
    const start = typed.toLowerCase()
    return found.filter(({ value }) => value.toLowerCase().startsWith(start) && !/\p{Cc}/u.test(value))
  }
}

interface Position {
  readonly command: Command
  /** The option whose value comes next. */
  readonly option: Option | undefined
  /** The argument that comes next. */
  readonly argument: Argument | undefined
  /** The value of `--organization`, or of the first argument if that names an organization. */
  readonly organization: string | undefined
}

function walk(program: Command, words: readonly string[]): Position {
  let command = program
  let option: Option | undefined
  let argumentCount = 0
  let organization: string | undefined
  for (const word of words) {
    if (option) {
      if (option.long === '--organization') organization = word
      option = undefined
    } else if (word.startsWith('-')) {
      const [flag, value] = word.split('=', 2)
      const known = command.options.find(({ long, short }) => long === flag || short === flag)
      if (known?.required && value === undefined) option = known
      if (known?.long === '--organization') organization = value
    } else {
      const next = command.commands.find((each) => each.name() === word)
      if (next) {
        command = next
        argumentCount = 0
      } else {
        if (argumentAt(command, argumentCount)?.name() === 'organization') organization = word
        argumentCount += 1
      }
    }
  }
  return { command, option, argument: argumentAt(command, argumentCount), organization }
}

function argumentAt({ registeredArguments }: Command, index: number): Argument | undefined {
  return registeredArguments[index] ?? registeredArguments.findLast(({ variadic }) => variadic)
}

/** The candidates that need no database; undefined if names come next. */
function listStatic({ command, option, argument }: Position, typed: string): Candidate[] | undefined {
  const help = command.createHelp()
  if (!option && typed.startsWith('-')) {
    return help
      .visibleOptions(command)
      .map(({ long, short, description }) => ({ value: long ?? short ?? '', description }))
  }
  const subcommands = help.visibleCommands(command)
  if (!option && subcommands.length > 0) {
    return subcommands.map((each) => ({ value: each.name(), description: each.summary() || each.description() }))
  }
  const choices = (option ?? argument)?.argChoices
  return choices?.map((value) => ({ value, description: '' }))
}

async function listNamesInTime(ctx: CliContext, position: Position): Promise<Candidate[]> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const timeout = new Promise<Candidate[]>((resolve) => {
    timer = setTimeout(() => resolve([]), NAMES_TIMEOUT_MS)
  })
  try {
    return await Promise.race([listNames(ctx, position), timeout])
  } catch {
    return []
  } finally {
    clearTimeout(timer)
  }
}

/** The names that the option or argument asks for, by the word in its angle brackets. */
async function listNames(ctx: CliContext, { command, option, argument, organization }: Position): Promise<Candidate[]> {
  const what = option ? /<(\w+)>/.exec(option.flags)?.[1] : argument?.name()
  const db = ctx.database()
  const organizationId = async () => (await findOrganization(ctx, organization)).id
  switch (what) {
    case 'organization':
      return (await listOrganizations(db, { limit: MAX_NAMES })).map(toCandidate)
    case 'workflow':
      return (await listWorkflowNames(db, await organizationId(), MAX_NAMES)).map(toCandidate)
    case 'source':
      return (await listWebhookSources(db, await organizationId())).slice(0, MAX_NAMES).map(toCandidate)
    case 'key': {
      const keys = await listApiKeys(db, await organizationId())
      return keys.slice(-MAX_NAMES).map(({ name, prefix }) => ({ value: name, description: prefix }))
    }
    case 'user':
    case 'person': {
      const users = await listUsers(db, await organizationId(), { limit: MAX_NAMES })
      return users.map(({ email, role }) => ({ value: email, description: role ?? 'no role' }))
    }
    case 'id':
      return option?.long === '--session' || command.parent?.name() === 'sessions'
        ? await listSessionIds(ctx, await organizationId())
        : await listRunIds(ctx, await organizationId())
    default:
      return []
  }
}

function toCandidate({ id, name }: { readonly id: string; readonly name: string }): Candidate {
  return { value: name, description: id }
}

async function listSessionIds(ctx: CliContext, organizationId: string): Promise<Candidate[]> {
  const sessions = await listSessionRows(ctx.database(), organizationId, { limit: MAX_IDS })
  return sessions.map(({ id, is_open: isOpen, created_at: at }) => ({
    value: id,
    description: `${isOpen ? 'open' : 'closed'}, ${showTime(at)}`,
  }))
}

async function listRunIds(ctx: CliContext, organizationId: string): Promise<Candidate[]> {
  const runs = await listRuns(ctx.database(), organizationId, { limit: MAX_IDS })
  const names = await findWorkflowNames(
    ctx.database(),
    organizationId,
    runs.map((run) => run.workflow_id),
  )
  return runs.map(({ id, workflow_id: workflowId, status, created_at: at }) => ({
    value: id,
    description: `${names.get(workflowId) ?? ''}, ${status}, ${showTime(at)}`,
  }))
}
