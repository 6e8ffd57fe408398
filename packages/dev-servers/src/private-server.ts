import type { GuardedProcess } from './spawn-guarded.ts'

/** A server that one test or one development stack owns: it may kill, pause and restart it. */
export interface PrivateServer {
  /** Where clients connect. Stays the same over restarts. */
  url: string
  /** On 127.0.0.1. Stays the same over restarts. */
  port: number
  /** The server's main process; another one after each restart. */
  readonly pid: number
  /**
   * Signals the server and waits until it has ended; SIGSTOP and SIGCONT return at once.
   * @default 'SIGKILL'
   */
  kill: (signal?: NodeJS.Signals) => Promise<void>
  /** Stops the server if it runs, starts it again on the same data and port, and waits until it accepts connections. */
  restart: () => Promise<void>
  /** Sends SIGSTOP: connections stay open and the server answers nothing. */
  pause: () => void
  /** Sends SIGCONT, which ends a pause. */
  resume: () => void
  /** Ends the server and removes its data. */
  stop: () => Promise<void>
}

/** The main process of a running server. */
export type ServerProcess = Pick<GuardedProcess, 'pid' | 'kill' | 'exited'>

/** What `controlServer` needs to know about a server. */
export interface ControlServerOptions {
  url: string
  port: number
  /** Starts the server again and waits until it accepts connections. */
  start: () => Promise<ServerProcess>
  /** Asks for an orderly shutdown; sent by `restart`. */
  shutdownSignal: NodeJS.Signals
  /** Ends the server when its data is no longer needed; sent by `stop`. */
  stopSignal: NodeJS.Signals
  /** Runs after `stop` has ended the server. */
  cleanUp: () => Promise<void>
}

/** Wraps a server that was just started as a `PrivateServer`. */
export function controlServer(started: ServerProcess, options: ControlServerOptions): PrivateServer {
  const { url, port, start, shutdownSignal, stopSignal, cleanUp } = options
  let server = started
  const kill = async (signal: NodeJS.Signals = 'SIGKILL'): Promise<void> => {
    server.kill(signal)
    if (signal === 'SIGSTOP' || signal === 'SIGCONT') return
    // A paused process handles no other signal before it continues.
    server.kill('SIGCONT')
    await server.exited
  }
  return {
    url,
    port,
    get pid() {
      return server.pid
    },
    kill,
    async restart() {
      await kill(shutdownSignal)
      server = await start()
    },
    pause: () => void server.kill('SIGSTOP'),
    resume: () => void server.kill('SIGCONT'),
    async stop() {
      await kill(stopSignal)
      await cleanUp()
    },
  }
}
