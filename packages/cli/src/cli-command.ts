import type { Command } from 'commander'
import type { CliContext } from './cli-context.ts'
import type { Terminal } from './terminal.ts'

/** The result of a command, as JSON and as text. */
export interface CommandResult {
  readonly json: unknown
  readonly text: (terminal: Terminal) => string
  /** 1 when a part of the command failed. Default 0. */
  readonly exitStatus?: 0 | 1
  /** Whether the command has printed its result itself, as it went. */
  readonly isPrinted?: boolean
}

/** Gets the parameters that commander passes to an action: the command's arguments, then its options. */
type Handler<Parameters extends unknown[]> = (
  ctx: CliContext,
  ...parameters: Parameters
) => Promise<CommandResult | undefined>

/** Converts a handler to a commander action that prints the result as text, or as JSON with `--json`. */
export type Run = <Parameters extends unknown[]>(
  handler: Handler<Parameters>,
) => (...parameters: Parameters) => Promise<void>

/** Adds a command with the option `--json`. */
export function addCommand(parent: Command, nameAndArguments: string, summary: string): Command {
  return parent.command(nameAndArguments).description(summary).option('--json', 'print JSON')
}

/** `onResult` is called with the exit status of a command that did not throw. */
export function createRun(ctx: CliContext, onResult: (exitStatus: 0 | 1) => void): Run {
  return (handler) =>
    async (...parameters) => {
      const result = await handler(ctx, ...parameters)
      if (!result) return
      const { json: isJson = false } = parameters.find(isOptions) ?? {}
      const { terminal } = ctx
      if (!result.isPrinted)
        terminal.write(isJson ? `${JSON.stringify(result.json, null, 2)}\n` : result.text(terminal))
      onResult(result.exitStatus ?? 0)
    }
}

function isOptions(parameter: unknown): parameter is { json?: boolean } {
  return typeof parameter === 'object' && parameter !== null && Object.getPrototypeOf(parameter) === Object.prototype
}
