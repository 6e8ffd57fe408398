import { homedir } from 'node:os'
import { fileURLToPath } from 'node:url'
import { type Exit, type GuardedProcess, searchPath, spawnGuarded, waitUntil } from '@workflow-service/dev-servers'

/** Node keeps compiled modules here, which halves the processor time that a service or the CLI takes to start. */
const COMPILE_CACHE = fileURLToPath(new URL('../../../node_modules/.cache/compile', import.meta.url))

export interface StartProcessOptions {
  /** @default the Node that runs this process */
  command?: string
  args: string[]
  /** The environment beside PATH, HOME and NODE_COMPILE_CACHE; this process's own is not passed on. */
  env?: Record<string, string | undefined>
  cwd?: string
  /**
   * The program is ready when it has written `line`, or what is part of one, to stdout or stderr, or when `url` answers
   * 200.
   * @default ready at once
   */
  readyWhen?: { line: string } | { url: string } | undefined
  /**
   * How long to wait for `readyWhen`.
   * @default 30_000
   */
  timeoutMs?: number
}

/** A running program. It is killed when this process ends, also when this process is killed. */
export type StartedProcess = Awaited<ReturnType<typeof startProcess>>

/**
 * Starts a program and waits until it is ready. Rejects with its output when it ends before or is not ready in time;
 * then it has been killed.
 */
export async function startProcess(options: StartProcessOptions) {
  const child = await spawnGuarded({
    command: options.command ?? process.execPath,
    args: options.args,
    env: { PATH: searchPath, HOME: homedir(), NODE_COMPILE_CACHE: COMPILE_CACHE, ...options.env },
    cwd: options.cwd,
    deathSignal: 'SIGKILL',
  })
  const output = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output.stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output.stderr += text))
  const started = {
    pid: child.pid,
    get stdout() {
      return output.stdout
    },
    get stderr() {
      return output.stderr
    },
    /** The lines of stdout that are JSON objects, such as log lines, parsed. */
    get jsonLines() {
      return output.stdout.split('\n').flatMap(parseObject)
    },
    exited: child.exited,
    kill: (signal: NodeJS.Signals = 'SIGTERM') => child.kill(signal),
    /** Sends SIGTERM, after `timeoutMs` SIGKILL, and waits until the program has ended. */
    async stop(timeoutMs = 15_000): Promise<Exit> {
      child.kill('SIGTERM')
      child.kill('SIGCONT')
      const deadline = setTimeout(() => child.kill('SIGKILL'), timeoutMs)
      const exit = await child.exited
      clearTimeout(deadline)
      return exit
    },
  }
  if (options.readyWhen) await untilReady(started, options.readyWhen, options.timeoutMs ?? 30_000)
  return started
}

async function untilReady(
  started: Pick<GuardedProcess, 'exited' | 'kill'> & { readonly stdout: string; readonly stderr: string },
  readyWhen: NonNullable<StartProcessOptions['readyWhen']>,
  timeoutMs: number,
): Promise<void> {
  let exit: Exit | undefined
  void started.exited.then((result) => (exit = result))
  const output = () => `${started.stdout}${started.stderr}`
  const isReady = async () => {
    if ('url' in readyWhen) return (await fetch(readyWhen.url, { signal: AbortSignal.timeout(2000) })).status === 200
    return output().includes(readyWhen.line)
  }
  try {
    await waitUntil(async () => exit !== undefined || (await isReady()), {
      timeoutMs,
      // A request that is refused takes about 1 ms of processor time.
      intervalMs: 50,
      message: () => `the program to be ready; its output:\n${output()}`,
    })
  } catch (error) {
    started.kill('SIGKILL')
    await started.exited
    throw error
  }
  if (exit && !(await isReady().catch(() => false))) {
    throw new Error(`The program ended with ${exit.signal ?? exit.code} before it was ready; its output:\n${output()}`)
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
