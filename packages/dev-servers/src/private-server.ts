import type { GuardedProcess } from './spawn-guarded.ts'

/** A server that one test or one development stack owns: it may kill, pause and restart it. */
export type PrivateServer = ReturnType<typeof controlServer>

/** The main process of a running server. */
export type ServerProcess = Pick<GuardedProcess, 'pid' | 'kill' | 'exited'>

/** What `controlServer` needs to know about a server. */
export interface ControlServerOptions {
  url: string
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
export function controlServer(started: ServerProcess, options: ControlServerOptions) {
  const { url, start, shutdownSignal, stopSignal, cleanUp } = options
  let server = started
  /** Signals the server and waits until it has ended; SIGSTOP and SIGCONT return at once. */
  const kill = async (signal: NodeJS.Signals = 'SIGKILL'): Promise<void> => {
    server.kill(signal)
    if (signal === 'SIGSTOP' || signal === 'SIGCONT') return
    // A paused process handles no other signal before it continues.
    server.kill('SIGCONT')
    await server.exited
  }
  return {
    /** Where clients connect. Stays the same over restarts. */
    url,
    /** The server's main process; another one after each restart. */
    get pid() {
      return server.pid
    },
    kill,
    /** Stops the server if it runs, starts it again on the same data and port, and waits until it is ready. */
    restart: async (): Promise<void> => {
      await kill(shutdownSignal)
      server = await start()
    },
    /** Sends SIGSTOP: connections stay open and the server answers nothing. */
    pause: (): void => void server.kill('SIGSTOP'),
    /** Sends SIGCONT, which ends a pause. */
    resume: (): void => void server.kill('SIGCONT'),
    /** Ends the server and removes its data. */
    stop: async (): Promise<void> => {
      await kill(stopSignal)
      await cleanUp()
    },
  }
}
