import { type Answer, startCustomerEndpoint } from '@workflow-service/testkit'
import type { Call, ExpectedRequest, LoadOptions } from './load.ts'
import type { Script, System } from './system.ts'

/** A payload, and when its body was complete, in ms since 1970. */
export interface Arrival {
  readonly path: string
  /** The payload's only field. */
  readonly text: string
  readonly at: number
}

/** The endpoints of all customers, in this process. */
export type Receiver = Awaited<ReturnType<typeof startReceiver>>

/** Starts endpoints that keep a path, a text and a time of each payload, so that hours of them fit in memory. */
export async function startReceiver(answer: (arrival: Arrival) => Answer = answerByPath) {
  const arrivals: Arrival[] = []
  const { url, close } = await startCustomerEndpoint({
    keepsRequests: false,
    answer({ path, json, receivedAt }) {
      const arrival = { path, text: (json as { text: string }).text, at: receivedAt }
      arrivals.push(arrival)
      return answer(arrival)
    },
  })
  return { url, close, arrivals }
}

/**
 * Answers by the last part of the path: `slow` after 1 to 3 s; `broken` with 500, 404, a reset connection or, rarely,
 * never; everything else with 204 within 100 ms.
 */
export function answerByPath({ path, text }: Pick<Arrival, 'path' | 'text'>): Answer {
  const chance = hash(text) % 100
  if (path.endsWith('/slow')) return { status: 204, delayMs: 1_000 + 20 * chance }
  if (!path.endsWith('/broken')) return { status: 204, delayMs: chance }
  if (chance >= 15) return { status: chance >= 25 ? 500 : 404, delayMs: chance }
  return chance >= 1 ? 'reset' : 'hang'
}

/** The same number for the same text. */
export function hash(text: string): number {
  let value = 7
  for (const letter of text) value = (value * 31 + letter.charCodeAt(0)) % 10_007
  return value
}

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
      const failures = calls.flatMap(({ failure }) => failure ?? [])
      if (failures.length > 0) throw new Error(`${failures.length} calls failed, such as: ${failures[0]}`)
      return calls
    },
  }
  return receiver
}
