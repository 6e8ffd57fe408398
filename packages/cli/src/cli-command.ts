import { Argument, type Command, Option } from 'commander'
import type { CliContext, KeyContext, OperatorContext, OrganizationContext } from './cli-context.ts'
import { HAS_OPERATOR } from './access.ts'
import { UsageError } from './cli-error.ts'
import type { CommandResult, PrintedResult } from './command-result.ts'

/** Gets the command's arguments, then its options. */
type Handler<Context> = (ctx: Context, ...parameters: never[]) => Promise<CommandResult | PrintedResult>

type Load<Name extends string, Context> = () => Promise<Record<Name, Handler<Context>>>

/**
 * How a command is executed: by an operator with the database, with an API key, or with neither. The modules of
 * handlers are loaded when they are called: what they import takes longer than most commands.
 */
export interface Handlers {
  readonly operator?: Handler<OperatorContext>
  readonly key?: Handler<KeyContext>
  readonly local?: Handler<CliContext>
  /** Whether the command takes `--organization`. */
  readonly isInOrganization?: boolean
}

function lazily<Context, Name extends string>(load: Load<Name, Context>, name: Name): Handler<Context> {
  return async (ctx, ...parameters) => await (await load())[name](ctx, ...parameters)
}

/** A handler that works on the whole installation. */
export function global<Name extends string>(load: Load<Name, OperatorContext>, name: Name): Handlers {
  return { operator: lazily(load, name) }
}

/** A handler that finds the organization itself, by what else it is given. */
export function operator<Name extends string>(load: Load<Name, OperatorContext>, name: Name): Handlers {
  return { operator: lazily(load, name), isInOrganization: true }
}

/** A handler that works on one organization: that of `--organization`, or the only one. */
export function inOrganization<Name extends string>(load: Load<Name, OrganizationContext>, name: Name): Handlers {
  return {
    isInOrganization: true,
    operator: async (ctx, ...parameters) => {
      const { openOrganization } = await import('./operator/find.ts')
      const opened = await openOrganization(ctx, optionsOf(parameters).organization)
      return await (await load())[name](opened, ...parameters)
    },
  }
}

/** A handler that uses nothing but the public API. */
export function withKey<Name extends string>(load: Load<Name, KeyContext>, name: Name): Handlers {
  return { key: lazily(load, name) }
}

/** A handler that needs neither a database nor an API key. */
export function local<Name extends string>(load: Load<Name, CliContext>, name: Name): Handlers {
  return { local: lazily(load, name) }
}

/**
 * A command: everything that its help, its completion and its execution need. All commands have the option `--json`.
 */
export interface CommandDeclaration extends Handlers {
  readonly name: string
  readonly summary: string
  readonly parts: readonly (Argument | Option)[]
  /** The text below the options. */
  readonly help: string | undefined
}

/** Commands of one noun: `wf NOUN COMMAND`. */
export interface CommandGroup {
  readonly name: string
  readonly summary: string
  readonly commands: readonly CommandDeclaration[]
}

export function group(name: string, summary: string, commands: readonly CommandDeclaration[]): CommandGroup {
  return { name, summary, commands }
}

/** Of an option that may be repeated, `earlier` has what its values so far gave, at first the default. */
type Parse = (text: string, earlier: never) => unknown

/** Declares an argument: `<workflow>`, or `[id]` for an optional one. */
export function argument(flags: string, description: string, parse?: Parse): Argument {
  const declared = new Argument(flags, description)
  return parse ? declared.argParser(parse as (text: string) => unknown) : declared
}

export function option(flags: string, description: string, parse?: Parse, defaultValue?: unknown): Option {
  const declared = new Option(flags, description).default(defaultValue)
  return parse ? declared.argParser(parse as (text: string) => unknown) : declared
}

export function command(
  name: string,
  summary: string,
  handlers: Handlers,
  parts: readonly (Argument | Option)[] = [],
  help?: string,
): CommandDeclaration {
  return { name, summary, parts, help, ...handlers }
}

const ORGANIZATION = option('--organization <organization>', 'its id or name; not needed if there is only one')

/** Whether the command can be executed where there are no commands of operators. */
export function isOffered({ key, local: withNeither }: Handlers): boolean {
  return HAS_OPERATOR || key !== undefined || withNeither !== undefined
}

/** Adds a command to its parent. `execute` gets its arguments, then its options. */
export function addCommand(
  parent: Command,
  declaration: CommandDeclaration,
  execute: (declaration: CommandDeclaration, parameters: never[]) => Promise<void>,
): void {
  const { name, summary, parts, help, isInOrganization = false } = declaration
  const added = parent
    .command(name, { hidden: !isOffered(declaration) })
    .description(summary)
    .option('--json', 'print JSON')
  for (const part of isInOrganization ? [...parts, ORGANIZATION] : parts) {
    if (part instanceof Argument) added.addArgument(part)
    else added.addOption(part)
  }
  if (help !== undefined) added.addHelpText('after', help)
  added.action(async (...given: unknown[]) => {
    const parameters = given.slice(0, -1)
    const [first] = parts
    if (isInOrganization && first instanceof Argument && first.name() === 'organization') makeOption(parameters)
    await execute(declaration, parameters as never[])
  })
}

/** Some commands take the organization also as an optional argument. Their handlers get it as the option alone. */
function makeOption(parameters: unknown[]): void {
  const named = parameters.shift() as string | undefined
  const options = optionsOf(parameters)
  if (named !== undefined && options.organization !== undefined)
    throw new UsageError('The organization is named twice.')
  options.organization ??= named
}

/** Options that mean the same wherever a command has them. */
export interface CommonOptions {
  readonly json?: boolean
  readonly since?: Date
  readonly until?: Date
  organization?: string
}

/** The options of commands that wait for what happens. */
export interface FollowOptions extends CommonOptions {
  readonly follow?: boolean
  /** In milliseconds. */
  readonly timeout?: number
}

/** Commander passes the options last. */
export function optionsOf(parameters: readonly unknown[]): CommonOptions {
  return parameters.at(-1) as CommonOptions
}
