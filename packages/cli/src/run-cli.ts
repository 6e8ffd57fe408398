import { Command, CommanderError } from 'commander'
import manifest from '../package.json' with { type: 'json' }
import { chooseAccess, HAS_OPERATOR, hasDatabase } from './access.ts'
import { addCommand, type CommandDeclaration, isOffered, optionsOf } from './cli-command.ts'
import { type CliContext, type CliOverrides, createCliContext, type KeyContext } from './cli-context.ts'
import { CliError, UsageError } from './cli-error.ts'
import type { CommandResult, PrintedResult } from './command-result.ts'
import { COMMANDS } from './commands.ts'
import { addCompletionCommands } from './completion.ts'
import { checkPeriod } from './parse-options.ts'
import { paint } from './terminal.ts'

/** 0: success; 1: error; 2: wrong usage; 124: the time of `--timeout` is over, as with timeout(1); 130: Ctrl-C. */
type ExitStatus = 0 | 1 | 2 | 124 | 130

/** Runs `wf` with these arguments and resolves to its exit status. Never rejects. */
export async function runCli(args: readonly string[], overrides: CliOverrides = {}): Promise<ExitStatus> {
  const ctx = createCliContext(overrides)
  const end = args.indexOf('--')
  const before = end === -1 ? args : args.slice(0, end)
  const isJson = before.includes('--json')
  let exitStatus: ExitStatus = 0
  const program = createProgram(ctx, isJson, (status) => (exitStatus = status))
  try {
    checkOptions(program, before)
    await program.parseAsync([...args], { from: 'user' })
    const endedBy = ctx.endedBy()
    return endedBy === 'interrupt' ? 130 : endedBy === 'timeout' ? 124 : exitStatus
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return 0
      if (isJson) printError(ctx, new UsageError(toUsageMessage(error)), isJson)
      return 2
    }
    printError(ctx, error, isJson)
    return error instanceof CliError ? error.exitStatus : 1
  } finally {
    await ctx.dispose()
  }
}

/**
 * @throws UsageError if an option precedes its command, which has it alone: to Commander it would be unknown; or if it
 * follows one that needs a value: Commander would take it as the value, which only `--option=--value` means.
 */
function checkOptions(program: Command, args: readonly string[]): void {
  const options = program.commands.flatMap((each) => [each, ...each.commands]).flatMap((each) => each.options)
  const find = (flag: string) => options.find(({ short, long }) => flag === short || flag === long)
  const [first = '', second = ''] = args
  const isGroup = program.commands.some((each) => each.name() === first && each.commands.length > 0)
  const flag = (isGroup ? second : first).split('=')[0]!
  if (find(flag)) throw new UsageError(`a command is missing before ${flag} ${SEE_HELP}`)
  let option: string | undefined
  for (const word of args) {
    if (option !== undefined && (find(word) || word === '-h' || word === '--help'))
      throw new UsageError(`the value of ${option} is missing: ${word} is an option ${SEE_HELP}`)
    option = option === undefined && find(word)?.required ? word : undefined
  }
}

const SEE_HELP = '(run it with --help for usage)'

/** Commander has no message for a command that needs another one: it shows that command's help. */
function toUsageMessage({ code, message }: CommanderError): string {
  const reason = code === 'commander.help' ? 'a command is missing' : message.replace(/^error: /, '')
  return `${reason} ${SEE_HELP}`
}

function createProgram(ctx: CliContext, isJson: boolean, onResult: (exitStatus: 0 | 1) => void): Command {
  const { terminal } = ctx
  const program = new Command('wf')
    .description(
      'The Workflow Automation Service: starts and follows workflows with an API key, and operates it with its database.',
    )
    .usage('COMMAND [options]')
    .version(manifest.version, '-V, --version', 'print the version')
    .addHelpText('after', `\n${[KEY_HELP, ...(HAS_OPERATOR ? [OPERATOR_HELP] : []), COMMON_HELP].join('\n\n')}`)
    .exitOverride()
    .showHelpAfterError(SEE_HELP)
    .configureOutput({
      writeOut: (text) => terminal.write(text),
      // With --json, `runCli` prints the error as JSON.
      writeErr: isJson ? () => {} : (text) => terminal.writeError(text.replace(/^error:/, 'Error:')),
      getOutHasColors: () => terminal.isColoured,
      getErrHasColors: () => terminal.isColoured,
      getOutHelpWidth: () => terminal.columns ?? 120,
      getErrHelpWidth: () => terminal.columns ?? 120,
    })
    .configureHelp({ styleTitle: (title) => paint(terminal, 'bold', title) })
  const run = async (declaration: CommandDeclaration, parameters: never[]): Promise<void> => {
    const result = await execute(ctx, declaration, parameters)
    if (typeof result === 'number') return onResult(result)
    terminal.write(optionsOf(parameters).json ? `${JSON.stringify(result.json, null, 2)}\n` : result.text(terminal))
    onResult(result.exitStatus ?? 0)
  }
  for (const declared of COMMANDS) {
    if ('parts' in declared) {
      addCommand(program, declared, run)
    } else {
      const isHidden = declared.commands.every((each) => !isOffered(each))
      const group = program.command(declared.name, { hidden: isHidden }).description(declared.summary)
      for (const each of declared.commands) addCommand(group, each, run)
    }
  }
  addCompletionCommands(program, terminal)
  return program
}

/** Executes a command with the database or with an API key, whichever is set up and the command can use. */
async function execute(
  ctx: CliContext,
  { name, local, operator, key }: CommandDeclaration,
  parameters: never[],
): Promise<CommandResult | PrintedResult> {
  checkPeriod(optionsOf(parameters))
  if (local) return await local(ctx, ...parameters)
  if (key && (!operator || chooseAccess(ctx.env) === 'key'))
    return await key(await keyContext(ctx, parameters), ...parameters)
  if (key && chooseAccess(ctx.env) === undefined) {
    throw new CliError(
      HAS_OPERATOR
        ? `${NOT_SET_UP} As an operator, set DATABASE_URL; beside a running npm start, wf finds its settings by itself.`
        : NOT_SET_UP,
    )
  }
  if (!operator) throw new TypeError(`wf ${name} has no handler`)
  if (chooseAccess(ctx.env) === 'key' && !hasDatabase(ctx.env)) {
    throw new CliError(
      'This is a command of operators: it needs the database (DATABASE_URL). With an API key there are workflows, start, runs list, runs show, sessions show, logs, listen and whoami.',
    )
  }
  return await operator(await ctx.operator(), ...parameters)
}

const NOT_SET_UP = 'Sign in with an API key: wf login URL, or set WF_API_KEY and WF_API_URL.'

/** @throws CliError if `--organization` names another organization than that of the key. */
async function keyContext(ctx: CliContext, parameters: readonly unknown[]): Promise<KeyContext> {
  const opened = await ctx.key()
  const { organization: given } = optionsOf(parameters)
  if (given !== undefined) {
    const { id, name } = await opened.client.organization.get()
    if (given !== name && given.toLowerCase() !== id)
      throw new CliError(`The API key is one of ${name}, not of ${given}.`)
  }
  return opened
}

const KEY_HELP = `With an API key (wf login, or WF_API_KEY and WF_API_URL): workflows, start,
runs list, runs show, sessions show, logs, listen, whoami. WF_API_KEY goes
before a database, a database before a saved key.`
const OPERATOR_HELP = `Operators set what the services have: DATABASE_URL, for webhook sources also
DISPATCHER_URL and INTERNAL_API_TOKEN, for single commands SECRETS_KEY, APP_URL,
AMQP_URL (packages/cli/README.md, "Settings"). Without DATABASE_URL, wf reads
the settings of npm start from .local/env, or from LOCAL_DIR/env.`
const COMMON_HELP = `Exit status: 0 success, 1 error, 2 wrong usage, 124 --timeout is over, 130
Ctrl-C. Every command prints JSON with --json. Times are UTC. What begins with a
dash is written as --option=-VALUE, and an argument after --.`

function printError(ctx: CliContext, error: unknown, isJson: boolean): void {
  const { terminal } = ctx
  const stack = error instanceof Error ? error.stack : String(error)
  const { message, details } = ctx.explain(error) ?? new CliError(`Unexpected error, please report it: ${stack}`)
  if (isJson) {
    terminal.writeError(`${JSON.stringify({ error: { ...details, message } }, null, 2)}\n`)
  } else {
    terminal.writeError(`${paint(terminal, 'red', 'Error:')} ${message}\n`)
  }
}
