import type { Argument, Command, Option } from 'commander'

/** A word that may come next. */
export interface Candidate {
  readonly value: string
  readonly description: string
}

/** Returns what the last of the words after `wf` can be: commands, options, or choices of an option or argument. */
export function completeWords(program: Command, words: readonly string[]): Candidate[] {
  const typed = words.at(-1) ?? ''
  const start = typed.toLowerCase()
  const found = listCandidates(walk(program, words.slice(0, -1)), typed)
  return found.filter(({ value }) => value.toLowerCase().startsWith(start))
}

interface Position {
  readonly command: Command
  readonly option: Option | undefined
  /** The argument that comes next. */
  readonly argument: Argument | undefined
}

function walk(program: Command, words: readonly string[]): Position {
  let command = program
  let option: Option | undefined
  let argumentCount = 0
  for (const word of words) {
    if (option) {
      option = undefined
    } else if (word.startsWith('-')) {
      const [flag, value] = word.split('=', 2)
      const known = command.options.find(({ long, short }) => long === flag || short === flag)
      if (known?.required && value === undefined) option = known
    } else {
      const next = command.commands.find((each) => each.name() === word)
      argumentCount = next ? 0 : argumentCount + 1
      command = next ?? command
    }
  }
  return { command, option, argument: command.registeredArguments[argumentCount] }
}

function listCandidates({ command, option, argument }: Position, typed: string): Candidate[] {
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
  const choices = (option ?? argument)?.argChoices ?? []
  return choices.map((value) => ({ value, description: '' }))
}
