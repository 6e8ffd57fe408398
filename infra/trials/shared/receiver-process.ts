// A customer's endpoint and, in the same process, a load generator: see remote-receiver.ts.
// Usage: receiver-process.ts [DELAY_MS]
//   POST /     receives a payload and answers 204 after the delay
//   PUT /      begins the `RemoteLoad`s of the body
//   DELETE /   ends the loads that have no end, waits for all calls, and answers with `RemoteFigures`
import { setTimeout as sleep } from 'node:timers/promises'
import { type Answer, type RecordedRequest, startCustomerEndpoint } from '@workflow-service/testkit'
import { Agent } from 'undici'
import { type Load, send, startLoad } from './load.ts'
import type { RemoteFigures, RemoteLoad } from './remote-receiver.ts'

const REQUEST_TIMEOUT_MS = 10_000
const PAYLOAD_TIMEOUT_MS = 30_000
const LABEL = /[a-z]+ start \d+/

const delayMs = Number(process.argv[2] ?? 0)
/** What to do when the payload of a start arrives. */
const pending = new Map<string, () => void>()
/** Keeps its connections from one load to the next. */
const agent = new Agent({ pipelining: 1 })
let loads: { options: RemoteLoad; load: Load }[] = []
let repeated = 0
let count = 0

const endpoint = await startCustomerEndpoint({ keepsRequests: false, answer })
process.stdout.write(`listening ${endpoint.port}\n`)

async function answer({ method, json, text }: RecordedRequest): Promise<Answer> {
  if (method === 'PUT') {
    loads = (json as RemoteLoad[]).map(begin)
    return { status: 204 }
  }
  if (method === 'DELETE') return { body: await finish() }
  const label = LABEL.exec(text)?.[0]
  if (label !== undefined) {
    const arrive = pending.get(label)
    if (!arrive) repeated += 1
    pending.delete(label)
    arrive?.()
  }
  return { status: 204, delayMs }
}

function begin(options: RemoteLoad): (typeof loads)[number] {
  const { url, method, headers, body, status, label, callers, ...limits } = options
  const request = { method, headers, body, status, timeoutMs: REQUEST_TIMEOUT_MS, dispatcher: agent }
  const start = async (): Promise<void> => {
    const text = `${label} start ${(count += 1)}`
    const { promise, resolve } = Promise.withResolvers<void>()
    const arrived = new AbortController()
    pending.set(text, () => {
      arrived.abort()
      resolve()
    })
    await send(url, { ...request, method: 'POST', status: 202, body: JSON.stringify({ context: `text: ${text}` }) })
    const isLate = sleep(PAYLOAD_TIMEOUT_MS, true, { signal: arrived.signal }).catch(() => false)
    if (await Promise.race([promise, isLate])) throw new Error(`The payload of "${text}" did not arrive.`)
  }
  const call = label === undefined ? async () => void (await send(url, request)) : start
  return { options, load: startLoad({ callers, ...limits, call }) }
}

async function finish(): Promise<RemoteFigures> {
  for (const { options, load } of loads) {
    if (options.seconds === undefined && options.count === undefined) await load.stop()
    await load.done
  }
  const figures = { calls: loads.map(({ load }) => load.calls), repeated }
  repeated = 0
  return figures
}
