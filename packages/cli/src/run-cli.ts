import { readFileSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import { type CommandDeclaration, type CommandGroup, createAddCommand } from './cli-command.ts'
import { type CliContext, type CliOverrides, createCliContext } from './cli-context.ts'
import { toCliError, UsageError } from './cli-error.ts'
import { afterRestoreCommand } from './commands/after-restore.ts'
import { applyCommand } from './commands/apply.ts'
import { addCompletionCommands } from './commands/completion.ts'
import { exportCommand } from './commands/export.ts'
import { keyCommands } from './commands/keys.ts'
import { listenCommand } from './commands/listen.ts'
import { deliveryCommands } from './commands/deliveries.ts'
import { logsCommand } from './commands/logs.ts'
import { migrateCommand } from './commands/migrate.ts'
import { organizationCommands } from './commands/organizations.ts'
import { queueCommands } from './commands/queue.ts'
import { ruleCommands } from './commands/rules.ts'
import { runCommands } from './commands/runs.ts'
import { secretCommands } from './commands/secrets.ts'
import { sessionCommands } from './commands/sessions.ts'
import { setupLinkCommand } from './commands/setup-link.ts'
import { sourceCommands } from './commands/sources.ts'
import { startCommand } from './commands/start.ts'
import { userCommands } from './commands/users.ts'
import { workflowCommands } from './commands/workflows.ts'
import { paint, reflowHelp } from './terminal.ts'

/** In the order of the help. */
const COMMANDS: readonly (CommandDeclaration | CommandGroup)[] = [
  migrateCommand,
  applyCommand,
  exportCommand,
  organizationCommands,
  setupLinkCommand,
  userCommands,
  keyCommands,
  workflowCommands,
  startCommand,
  sourceCommands,
  listenCommand,
  logsCommand,
  deliveryCommands,
  runCommands,
  ruleCommands,
  sessionCommands,
  queueCommands,
  secretCommands,
  afterRestoreCommand,
]

/** 0: success; 1: error; 2: wrong usage. */
export type ExitStatus = 0 | 1 | 2

/** Runs `wf` with these arguments and resolves to its exit status. Never rejects. */
export async function runCli(args: readonly string[], overrides: CliOverrides = {}): Promise<ExitStatus> {
  const ctx = createCliContext(overrides)
  const isJson = args.includes('--json')
  let exitStatus: ExitStatus = 0
  const program = createProgram(ctx, isJson, (status) => (exitStatus = status))
  try {
    await program.parseAsync([...args], { from: 'user' })
    return exitStatus
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return 0
      if (isJson) printError(ctx, new UsageError(toUsageMessage(error)), isJson)
      return 2
    }
    printError(ctx, error, isJson)
    return error instanceof UsageError ? 2 : 1
  } finally {
    await ctx.dispose()
  }
}

/** Commander has no message for a command that needs another one: it shows that command's help. */
function toUsageMessage({ code, message }: CommanderError): string {
  const reason = code === 'commander.help' ? 'a command is missing' : message.replace(/^error: /, '')
  return `${reason} (run it with --help for usage)`
}

function createProgram(ctx: CliContext, isJson: boolean, onResult: (exitStatus: 0 | 1) => void): Command {
  const { terminal } = ctx
  const program = new Command('wf')
    .description(
      'Operates the Workflow Automation Service: applies manifests, manages keys, shows runs and deliveries.',
    )
    .usage('COMMAND [options]')
    .version(readVersion(), '-V, --version', 'print the version')
    .addHelpText('after', SETTINGS_HELP)
    .exitOverride()
    .showHelpAfterError('(run it with --help for usage)')
    .configureOutput({
      // Help and version: the texts after the options are not fitted by commander.
      writeOut: (text) => terminal.write(terminal.columns === undefined ? text : reflowHelp(text, terminal.columns)),
      // With --json, `runCli` prints the error as JSON.
      writeErr: isJson ? () => {} : terminal.writeError,
      getOutHasColors: () => terminal.isColoured,
      getErrHasColors: () => terminal.isColoured,
      getOutHelpWidth: () => terminal.columns ?? 120,
      getErrHelpWidth: () => terminal.columns ?? 120,
    })
    .configureHelp({ styleTitle: (title) => paint(terminal, 'bold', title) })
  const addCommand = createAddCommand(ctx, onResult)
  for (const declared of COMMANDS) {
    if ('run' in declared) {
      addCommand(program, declared)
    } else {
      const group = program.command(declared.name).description(declared.summary)
      for (const each of declared.commands) addCommand(group, each)
    }
  }
  addCompletionCommands(program, ctx)
  return program
}

function readVersion(): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}

const SETTINGS_HELP = `
Settings come from the environment, with the same names as in the services:
  DATABASE_URL                          every command but "queue", "completion", and "listen" without --source
  DISPATCHER_URL, INTERNAL_API_TOKEN    apply (with webhook sources), sources test, sources send
  SECRETS_KEY                           secrets rotate; apply compares secrets with it, if it is set
  APP_URL                               setup-link, users reset-link
  AMQP_URL, AMQP_QUEUE_TYPE             queue
If DATABASE_URL is not set, wf reads the settings of npm start from .local/env, unless they are given. LOCAL_DIR names another folder
than .local.

Exit status: 0 success, 1 error, 2 wrong usage. Every command prints JSON with --json. Times are UTC.`

function printError({ terminal, config }: CliContext, error: unknown, isJson: boolean): void {
  const cliError = toCliError(error, config)
  if (!cliError) {
    terminal.writeError(`Unexpected error, please report it: ${error instanceof Error ? error.stack : String(error)}\n`)
    return
  }
  if (isJson) {
    const { message, details } = cliError
    terminal.writeError(`${JSON.stringify({ error: { ...details, message } }, null, 2)}\n`)
  } else {
    terminal.writeError(`${paint(terminal, 'red', 'Error:')} ${cliError.message}\n`)
  }
}
