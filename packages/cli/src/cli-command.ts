import type { Command } from 'commander'
import type { CliContext } from './cli-context.ts'
import type { Terminal } from './terminal.ts'

/** What a command has to say: to a program and to people. */
export interface CommandResult {
  readonly json: unknown
  readonly text: (terminal: Terminal) => string
  /** 1 when something of what was asked for was refused. */
  readonly exitStatus?: 0 | 1
}

/** What commander hands over: the command's arguments, then its options. */
type Handler<Parameters extends unknown[]> = (
  ctx: CliContext,
  ...parameters: Parameters
) => Promise<CommandResult | undefined>

/** Makes a commander action of a handler: prints its answer as a table, or as JSON with `--json`. */
export type Run = <Parameters extends unknown[]>(
  handler: Handler<Parameters>,
) => (...parameters: Parameters) => Promise<void>

/** Adds a command that knows `--json`. */
export function addCommand(parent: Command, nameAndArguments: string, summary: string): Command {
  return parent.command(nameAndArguments).description(summary).option('--json', 'print JSON')
}

/** `onResult` hears the exit status of each command that ends without an error. */
export function createRun(ctx: CliContext, onResult: (exitStatus: 0 | 1) => void): Run {
  return (handler) =>
    async (...parameters) => {
      const result = await handler(ctx, ...parameters)
      if (!result) return
      const { json: isJson = false } = parameters.find(isOptions) ?? {}
      const { terminal } = ctx
      terminal.write(isJson ? `${JSON.stringify(result.json, null, 2)}\n` : result.text(terminal))
      onResult(result.exitStatus ?? 0)
    }
}

function isOptions(parameter: unknown): parameter is { json?: boolean } {
  return typeof parameter === 'object' && parameter !== null && Object.getPrototypeOf(parameter) === Object.prototype
}
