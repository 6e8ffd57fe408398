import { assertSucceeded, type Call, type ExpectedRequest, type LoadOptions } from './load.ts'
import type { System } from './system.ts'

type RemoteLimits = Pick<LoadOptions<unknown>, 'callers' | 'everyMs' | 'seconds' | 'count'>

/** A load that the receiver's process sends, as JSON. */
export interface RemoteLoad extends RemoteLimits, Omit<ExpectedRequest, 'timeoutMs' | 'dispatcher'> {
  readonly url: string
  /** Starts a workflow with the text `LABEL start NUMBER`: a call ends when its payload has arrived. */
  readonly label?: string
}

/** What the receiver's process measured: the calls of each load, and the payloads that arrived more than once. */
export interface RemoteFigures {
  readonly calls: readonly (readonly Call[])[]
  readonly repeated: number
}

/**
 * Starts an endpoint and a load generator in one process of their own, so that each payload is timed where its start
 * was sent.
 * @param delayMs How long the endpoint takes to answer a payload.
 */
export async function startRemoteReceiver(system: System, delayMs = 0) {
  const url = await system.startScript(import.meta.resolve('./receiver-process.ts'), [String(delayMs)])
  const start = async (loads: readonly RemoteLoad[]): Promise<void> => {
    await fetch(url, { method: 'PUT', body: JSON.stringify(loads) })
  }
  const finish = async () => (await (await fetch(url, { method: 'DELETE' })).json()) as RemoteFigures
  return {
    url,
    /** Begins loads. */
    start,
    /** Ends the loads that have no end, waits for all calls, and resolves to the figures. */
    finish,
    /** Runs a load with an end. @throws Error if a call failed. */
    async run(load: RemoteLoad): Promise<readonly Call[]> {
      await start([load])
      const [calls = []] = (await finish()).calls
      return assertSucceeded(calls)
    },
  }
}
