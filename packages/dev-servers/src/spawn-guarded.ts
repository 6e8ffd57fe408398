import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { constants } from 'node:os'
import { createInterface } from 'node:readline'
import { PassThrough, type Readable } from 'node:stream'

/** How to start a program that must not outlive this process. */
export interface GuardedSpawnOptions {
  command: string
  args: string[]
  /** What the program sees; undefined = what this process sees. */
  env?: NodeJS.ProcessEnv
  cwd?: string
  uid?: number
  gid?: number
  /** What the program reads on stdin; nothing when absent. */
  input?: string
  /** What the program gets when this process dies without stopping it. */
  deathSignal: 'SIGINT' | 'SIGTERM' | 'SIGKILL'
}

/** How a program ended: one of the two is null. */
export interface Exit {
  code: number | null
  signal: NodeJS.Signals | null
}

/** A program that ends when this process does. */
export interface GuardedProcess {
  pid: number
  stdout: Readable
  stderr: Readable
  /** Settles when the program has ended, by itself or not; never rejects. */
  exited: Promise<Exit>
  /** Signals the program. False when it has ended already. */
  kill: (signal: NodeJS.Signals) => boolean
}

// A shell stays between: it reaps what it starts, and beside the program it keeps a watcher that waits on a pipe which
// only this process holds. End of file there means that this process is gone, however it died. SIGCONT, because a paused
// program takes no other signal. The shell's own stderr is closed, since it would add "Killed" to the program's.
const guardScript = `
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
 * Starts a program in a process group of its own: Ctrl-C in the terminal does not reach it, so that whoever started it
 * stops it in the right order; and when this process dies, even by SIGKILL, the program gets `deathSignal`. Rejects when
 * it cannot be started. On Windows there is no such guard.
 */
export async function spawnGuarded(options: GuardedSpawnOptions): Promise<GuardedProcess> {
  const { command, args, env, cwd, uid, gid, input } = options
  const stdin = input === undefined ? 'ignore' : 'pipe'
  const guarded = process.platform !== 'win32'
  const script = guardScript.replace('$SIGNAL', options.deathSignal.slice('SIG'.length))
  const child = guarded
    ? spawn('/bin/sh', ['-c', script, 'sh', command, ...args], {
        env,
        cwd,
        uid,
        gid,
        detached: true,
        stdio: [stdin, 'pipe', 'pipe', 'pipe'],
      })
    : spawn(command, args, { env, cwd, stdio: [stdin, 'pipe', 'pipe'], windowsHide: true })
  // When a program ends, Node throws away what nobody has read yet.
  const stdout = child.stdout!.pipe(new PassThrough())
  const stderr = child.stderr!.pipe(new PassThrough())
  await once(child, 'spawn')
  child.stdin?.on('error', () => {}).end(input)
  const exited = new Promise<Exit>((settle) => {
    child.once('exit', (code, signal) => settle(guarded ? toExit(code, signal) : { code, signal }))
  })
  const pid = guarded ? await readPid(child.stdio[3] as Readable) : child.pid!
  const kill = (signal: NodeJS.Signals) => {
    if (child.exitCode !== null || child.signalCode !== null) return false
    try {
      return process.kill(pid, signal)
    } catch {
      return false
    }
  }
  return { pid, stdout, stderr, exited, kill }
}

async function readPid(pipe: Readable): Promise<number> {
  pipe.on('error', () => {})
  for await (const line of createInterface({ input: pipe })) return Number(line)
  throw new Error('The program was not started: /bin/sh ended at once')
}

/** A shell tells the signal that ended its child as 128 plus the signal's number. */
function toExit(code: number | null, signal: NodeJS.Signals | null): Exit {
  const number = (code ?? 0) - 128
  const name = Object.entries(constants.signals).find(([, value]) => value === number)?.[0]
  return name ? { code: null, signal: name as NodeJS.Signals } : { code, signal }
}
