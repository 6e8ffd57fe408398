import type { OrganizationName } from '@workflow-service/database'
import { Argument, type Command, Option } from 'commander'
import type { CliContext } from './cli-context.ts'
import { findOrganization } from './find.ts'
import { type Column, renderTable, type Terminal } from './terminal.ts'

/** The result of a command, as JSON and as text. */
export interface CommandResult {
  readonly json: unknown
  readonly text: (terminal: Terminal) => string
  /** 1 when a part of the command failed. Default 0. */
  readonly exitStatus?: 0 | 1
  /** Whether the command has printed its result itself, as it went. */
  readonly isPrinted?: boolean
}

/** Gets the command's arguments, then its options. */
type Handler<Parameters extends unknown[]> = (
  ctx: CliContext,
  ...parameters: Parameters
) => Promise<CommandResult | undefined>

/**
 * A command: everything that its help, its completion and its execution need. All commands have the option `--json`.
 */
export interface CommandDeclaration {
  readonly name: string
  readonly summary: string
  readonly parts: readonly (Argument | Option)[]
  /** The text below the options. */
  readonly help: string | undefined
  readonly run: Handler<unknown[]>
}

/** Commands of one noun: `wf NOUN COMMAND`. */
export interface CommandGroup {
  readonly name: string
  readonly summary: string
  readonly commands: readonly CommandDeclaration[]
}

/** Declares a group of commands. */
export function group(name: string, summary: string, commands: readonly CommandDeclaration[]): CommandGroup {
  return { name, summary, commands }
}

/** Of an option that may be repeated, `earlier` has what its values so far gave, at first the default. */
type Parse = (text: string, earlier: never) => unknown

/** Declares an argument: `<workflow>`, or `[id]` for an optional one. Completion knows the names in the brackets. */
export function argument(flags: string, description: string, parse?: Parse): Argument {
  const declared = new Argument(flags, description)
  return parse ? declared.argParser(parse as (text: string) => unknown) : declared
}

/** Declares an option. */
export function option(flags: string, description: string, parse?: Parse, defaultValue?: unknown): Option {
  const declared = new Option(flags, description).default(defaultValue)
  return parse ? declared.argParser(parse as (text: string, earlier: unknown) => unknown) : declared
}

/** Declares a command. */
export function command<Parameters extends unknown[]>(
  name: string,
  summary: string,
  run: Handler<Parameters>,
  parts: readonly (Argument | Option)[] = [],
  help?: string,
): CommandDeclaration {
  return { name, summary, parts, help, run: run as unknown as Handler<unknown[]> }
}

export const ORGANIZATION = option('--organization <organization>', 'its id or name; not needed if there is only one')

/** Declares a command with the option `--organization`, whose handler gets the organization before its arguments. */
export function inOrganization<Parameters extends unknown[]>(
  name: string,
  summary: string,
  run: Handler<[OrganizationName, ...Parameters]>,
  parts: readonly (Argument | Option)[] = [],
  help?: string,
): CommandDeclaration {
  const handler = async (ctx: CliContext, ...parameters: Parameters) => {
    const { organization } = optionsOf(parameters)
    return await run(ctx, await findOrganization(ctx, organization), ...parameters)
  }
  return command(name, summary, handler, [ORGANIZATION, ...parts], help)
}

/** The result of a command that lists rows: a table, or a JSON array. */
export function listResult<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  whenEmpty: string,
  toJson: (row: Row) => unknown = (row) => row,
): CommandResult {
  return { json: rows.map((row) => toJson(row)), text: (terminal) => renderTable(terminal, columns, rows, whenEmpty) }
}

/** Returns these fields of a row with the names that JSON has: `created_at` for `createdAt`. */
export function toSnakeCase<Row>(row: Row, names: readonly (keyof Row & string)[]): object {
  return Object.fromEntries(names.map((name) => [name.replaceAll(/[A-Z]/g, toSnake), row[name]]))
}

function toSnake(letter: string): string {
  return `_${letter.toLowerCase()}`
}

/**
 * Creates a function that adds a command to its parent. `onResult` is called with the exit status of a command that did
 * not throw.
 */
export function createAddCommand(
  ctx: CliContext,
  onResult: (exitStatus: 0 | 1) => void,
): (parent: Command, declaration: CommandDeclaration) => void {
  return (parent, { name, summary, parts, help, run }) => {
    const added = parent.command(name).description(summary).option('--json', 'print JSON')
    for (const part of parts) {
      if (part instanceof Argument) added.addArgument(part)
      else added.addOption(part)
    }
    if (help !== undefined) added.addHelpText('after', help)
    added.action(async (...parameters: unknown[]) => {
      const result = await run(ctx, ...parameters)
      if (!result) return
      const { json: isJson = false } = optionsOf(parameters)
      const { terminal } = ctx
      if (!result.isPrinted) {
        terminal.write(isJson ? `${JSON.stringify(result.json, null, 2)}\n` : result.text(terminal))
      }
      onResult(result.exitStatus ?? 0)
    })
  }
}

/** Commander passes the options after the arguments, as a plain object. */
function optionsOf(parameters: readonly unknown[]): { json?: boolean; organization?: string } {
  return parameters.find(isPlainObject) ?? {}
}

function isPlainObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
}
