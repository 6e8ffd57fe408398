import { type Exit, searchPath, spawnGuarded, waitUntil } from '@workflow-service/dev-servers'
import { readConfig } from './config.ts'

/** What to run, and how to see that it is up. */
export interface StartProcessOptions {
  /** Default: the Node that runs the tests. */
  command?: string
  args: string[]
  /** All that it sees beside PATH and HOME: the tests' own environment is not passed on. */
  env?: Record<string, string | undefined>
  cwd?: string
  /** A line on stdout or stderr that contains or matches this, or an address that answers 200. */
  readyWhen?: { line: string | RegExp } | { url: string }
  /** For `readyWhen`; default 30,000. */
  timeoutMs?: number
}

/** A running program. It is killed when the test process ends, however that ends. */
export interface StartedProcess {
  readonly pid: number
  /** All so far. */
  readonly stdout: string
  readonly stderr: string
  /** The lines of stdout that are JSON objects, such as log lines. */
  readonly jsonLines: Record<string, unknown>[]
  exited: Promise<Exit>
  kill: (signal?: NodeJS.Signals) => boolean
  /** SIGTERM, then SIGKILL after the deadline (default 15,000); resolves when it is gone. */
  stop: (deadlineMs?: number) => Promise<Exit>
}

/** Starts a program as a real process and waits until it is up. Rejects with its output when it ends before that. */
export async function startProcess(options: StartProcessOptions): Promise<StartedProcess> {
  const { home } = readConfig()
  const child = await spawnGuarded({
    command: options.command ?? process.execPath,
    args: options.args,
    env: { PATH: searchPath, HOME: home, ...options.env },
    cwd: options.cwd,
    deathSignal: 'SIGKILL',
  })
  const output = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output.stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output.stderr += text))
  const started: StartedProcess = {
    pid: child.pid,
    get stdout() {
      return output.stdout
    },
    get stderr() {
      return output.stderr
    },
    get jsonLines() {
      return output.stdout.split('\n').flatMap(parseObject)
    },
    exited: child.exited,
    kill: (signal = 'SIGTERM') => child.kill(signal),
    async stop(deadlineMs = 15_000) {
      child.kill('SIGTERM')
      child.kill('SIGCONT')
      const deadline = setTimeout(() => child.kill('SIGKILL'), deadlineMs)
      const exit = await child.exited
      clearTimeout(deadline)
      return exit
    },
  }
  if (options.readyWhen) await untilReady(started, options.readyWhen, options.timeoutMs ?? 30_000)
  return started
}

async function untilReady(
  started: StartedProcess,
  readyWhen: NonNullable<StartProcessOptions['readyWhen']>,
  timeoutMs: number,
): Promise<void> {
  let exit: Exit | undefined
  void started.exited.then((how) => (exit = how))
  const said = () => `${started.stdout}${started.stderr}`
  const isReady = async () => {
    if ('url' in readyWhen) return (await fetch(readyWhen.url, { signal: AbortSignal.timeout(2000) })).status === 200
    const { line } = readyWhen
    return said()
      .split('\n')
      .some((text) => (typeof line === 'string' ? text.includes(line) : line.test(text)))
  }
  try {
    await waitUntil(async () => exit !== undefined || (await isReady()), {
      timeoutMs,
      message: () => `the program to be ready; it said:\n${said()}`,
    })
  } catch (error) {
    started.kill('SIGKILL')
    await started.exited
    throw error
  }
  if (exit && !(await isReady().catch(() => false))) {
    throw new Error(`The program ended with ${exit.signal ?? exit.code} before it was ready; it said:\n${said()}`)
  }
}

function parseObject(line: string): Record<string, unknown>[] {
  if (!line.startsWith('{')) return []
  try {
    return [JSON.parse(line) as Record<string, unknown>]
  } catch {
    return []
  }
}
