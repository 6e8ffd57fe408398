import { setTimeout as sleep } from 'node:timers/promises'
import type { Argument, Command, Option } from 'commander'
import { chooseAccess } from './access.ts'
import type { CliContext } from './cli-context.ts'

/** A word that may come next. */
export interface Candidate {
  readonly value: string
  readonly description: string
}

/** A person waits for a key press: names that take longer are left out. */
const NAMES_TIMEOUT_MS = 2_000

/**
 * Creates a function that returns what the last of the words after `wf` can be: commands, options, choices, or names
 * from the database or the public API. It never rejects: without them there are no names.
 */
export function createCompletion(
  program: Command,
  ctx: CliContext,
): (words: readonly string[]) => Promise<Candidate[]> {
  return async (words) => {
    const typed = words.at(-1) ?? ''
    const position = walk(program, words.slice(0, -1))
    const late = sleep(NAMES_TIMEOUT_MS, [], { ref: false })
    const found = listStatic(position, typed) ?? (await Promise.race([listNames(ctx, position), late]).catch(() => []))
    const start = typed.toLowerCase()
    return found.filter(({ value }) => value.toLowerCase().startsWith(start) && !/\p{Cc}/u.test(value))
  }
}

interface Position {
  readonly command: Command
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

/** The names that the option or argument asks for, by the word in its brackets. */
async function listNames(ctx: CliContext, { command, option, argument, organization }: Position): Promise<Candidate[]> {
  const word = option ? /<(\w+)>/.exec(option.flags)?.[1] : argument?.name()
  const isSession = option?.long === '--session' || command.parent?.name() === 'sessions'
  const what = word === 'id' ? (isSession ? 'session' : 'run') : word
  const access = chooseAccess(ctx.env)
  if (what === undefined || access === undefined) return []
  if (access === 'operator') {
    const { listNames: listFromDatabase } = await import('./operator/list-names.ts')
    return await listFromDatabase(await ctx.operator(), what, organization)
  }
  if (what !== 'workflow') return []
  const { client } = await ctx.key()
  const { data } = await client.workflows.list({ limit: 100 })
  return data.map(({ id, name }) => ({ value: name, description: id }))
}
