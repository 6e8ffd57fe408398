import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { constants } from 'node:os'
import { createInterface } from 'node:readline'
import { PassThrough, type Readable } from 'node:stream'

/** A program that must not outlive this process. */
export interface GuardedSpawnOptions {
  command: string
  args: string[]
  /** @default this process's environment */
  env?: NodeJS.ProcessEnv
  cwd?: string
  uid?: number
  gid?: number
  /**
   * What the program reads on stdin.
   * @default nothing
   */
  input?: string
  /** Sent to the program when this process ends without stopping it. */
  deathSignal: 'SIGINT' | 'SIGTERM' | 'SIGKILL'
}

/** How a program ended; either `code` or `signal` is null. */
export interface Exit {
  code: number | null
  signal: NodeJS.Signals | null
}

/** A running program that ends when this process does. */
export type GuardedProcess = Awaited<ReturnType<typeof spawnGuarded>>

// A shell runs between this process and the program. It starts a watcher that reads from a pipe (fd 3) whose other end
// only this process has open: end of file there means that this process has ended, also by SIGKILL. The watcher then
// signals the process group. SIGCONT follows, because a paused program handles no other signal before it continues. The
// shell's own stderr is closed, or it would add "Killed" to the program's.
const GUARD_SCRIPT = `
exec 4>&2 2>/dev/null
trap : INT TERM QUIT HUP
( trap '' INT TERM QUIT HUP
  read -r never <&3 || { kill -s "$SIGNAL" -- -$$; kill -s CONT -- -$$; }
) </dev/null >/dev/null 4>&- &
watcher=$!
( exec 2>&4 4>&-; exec /bin/sh -c 'echo $$ >&3; exec 3<&-; exec "$@"' sh "$@" )
status=$?
kill -s KILL $watcher
wait $watcher
exit $status`

/**
 * Starts a program in a new process group: Ctrl-C in the terminal does not reach it, so this process can stop its
 * programs in the right order. When this process ends, even by SIGKILL, the program gets `deathSignal`; not on Windows.
 * Rejects when the working directory does not exist; a missing program ends with exit code 127.
 */
export async function spawnGuarded(options: GuardedSpawnOptions) {
  const { command, args, env, cwd, uid, gid, input } = options
  const stdin = input === undefined ? 'ignore' : 'pipe'
  const isGuarded = process.platform !== 'win32'
  const script = GUARD_SCRIPT.replace('$SIGNAL', options.deathSignal.slice('SIG'.length))
  const child = isGuarded
    ? spawn('/bin/sh', ['-c', script, 'sh', command, ...args], {
        env,
        cwd,
        uid,
        gid,
        detached: true,
        stdio: [stdin, 'pipe', 'pipe', 'pipe'],
      })
    : spawn(command, args, { env, cwd, stdio: [stdin, 'pipe', 'pipe'], windowsHide: true })
  // When a program ends, Node discards output that has not been read yet.
  const stdout = child.stdout!.pipe(new PassThrough())
  const stderr = child.stderr!.pipe(new PassThrough())
  await once(child, 'spawn')
  child.stdin?.on('error', () => {}).end(input)
  /** Resolves when the program has ended, for any reason. Never rejects. */
  const exited = new Promise<Exit>((settle) => {
    child.once('exit', (code, signal) => settle(isGuarded ? toExit(code, signal) : { code, signal }))
  })
  const pid = isGuarded ? await readPid(child.stdio[3] as Readable) : child.pid!
  /** Signals the program. Returns false when it has ended already. */
  const kill = (signal: NodeJS.Signals): boolean => {
    if (child.exitCode !== null || child.signalCode !== null) return false
    try {
      return process.kill(pid, signal)
    } catch {
      return false
    }
  }
  return { pid, stdout: stdout as Readable, stderr: stderr as Readable, exited, kill }
}

async function readPid(pipe: Readable): Promise<number> {
  pipe.on('error', () => {})
  for await (const line of createInterface({ input: pipe })) return Number(line)
  throw new Error('The program was not started: /bin/sh ended first')
}

/** A shell exits with 128 plus the number of the signal that ended its child. */
function toExit(code: number | null, signal: NodeJS.Signals | null): Exit {
  const number = (code ?? 0) - 128
  const name = Object.entries(constants.signals).find(([, value]) => value === number)?.[0]
  return name ? { code: null, signal: name as NodeJS.Signals } : { code, signal }
}
