import { assertSucceeded, type Call, type ExpectedRequest, type LoadOptions } from './load.ts'
import type { Script, System } from './system.ts'

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
 * An endpoint and a load generator in one process of their own, so that each payload is timed where its start was sent.
 */
export interface RemoteReceiver extends Script {
  /** Begins loads. */
  start(loads: readonly RemoteLoad[]): Promise<void>
  /** Ends the loads that have no end, waits for all calls, and resolves to the figures. */
  finish(): Promise<RemoteFigures>
  /** Runs a load with an end. @throws Error if a call failed. */
  run(load: RemoteLoad): Promise<readonly Call[]>
}

/** @param delayMs How long the endpoint takes to answer a payload. */
export async function startRemoteReceiver(system: System, delayMs = 0): Promise<RemoteReceiver> {
  const script = await system.startScript(import.meta.resolve('./receiver-process.ts'), [String(delayMs)])
  const receiver: RemoteReceiver = {
    ...script,
    async start(loads) {
      await fetch(script.url, { method: 'PUT', body: JSON.stringify(loads) })
    },
    finish: async () => (await (await fetch(script.url, { method: 'DELETE' })).json()) as RemoteFigures,
    async run(load) {
      await receiver.start([load])
      const [calls = []] = (await receiver.finish()).calls
      return assertSucceeded(calls)
    },
  }
  return receiver
}
