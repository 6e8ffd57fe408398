// The customer's endpoint and, in the same process, the load generator of the runs: a start is sent as soon as a payload
// arrives, without polling for arrivals.
// Usage: endpoint-server.ts [DELAY_MS]
//   POST /      receives a payload and answers after the delay; a verification request without delay
//   GET /       answers with the payloads that arrived since the last such request
//   GET /next   answers when the next payload arrives
//   PUT /load   runs a RunLoad, and answers with the number of payloads that arrived
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'undici'

/** Starts that are sent for some time, as the body of `PUT /load`. */
export interface RunLoad {
  readonly origin: string
  readonly path: string
  readonly headers: Record<string, string>
  readonly body: string
  /** Starts that are under way at once, each in a new session. */
  readonly sessions: number
  readonly seconds: number
}

/** A payload and when it arrived, in ms since the epoch. */
export interface Arrival {
  readonly text: string
  readonly at: number
}

/** Before payloads are counted, so that they arrive as evenly as starts leave. */
const LEAD_MS = 500
const MAX_ARRIVALS = 1_000

const delayMs = Number(process.argv[2] ?? 0)
let received = 0
let arrivals: Arrival[] = []
let onArrival = (): void => {}
let nextArrival = Promise.withResolvers<void>()

const server = createServer((req, res) => {
  if (req.method === 'PUT') void runLoad(req, res)
  else if (req.method === 'POST') takePayload(req, res)
  else if (req.url === '/next') void nextArrival.promise.then(() => res.writeHead(204).end())
  else {
    res.end(JSON.stringify(arrivals))
    arrivals = []
  }
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  process.stdout.write(`listening ${typeof address === 'object' ? address?.port : ''}\n`)
})

function takePayload(req: IncomingMessage, res: ServerResponse): void {
  const at = performance.timeOrigin + performance.now()
  const chunks: Buffer[] = []
  req.on('data', (chunk: Buffer) => chunks.push(chunk))
  req.on('end', () => {
    const text = Buffer.concat(chunks).toString()
    received += 1
    if (arrivals.length < MAX_ARRIVALS) arrivals.push({ text, at })
    const isVerification = text.includes('service.webhook.verification')
    if (delayMs === 0 || isVerification) res.writeHead(204).end()
    else setTimeout(() => res.writeHead(204).end(), delayMs)
    onArrival()
    nextArrival.resolve()
    nextArrival = Promise.withResolvers()
  })
}

/** Sends a start for each payload that arrives until the time is over. */
async function runLoad(req: IncomingMessage, res: ServerResponse): Promise<void> {
  const { origin, path, headers, body, sessions, seconds } = (await json(req)) as RunLoad
  const gateway = new Pool(origin, { connections: sessions, pipelining: 1 })
  const errors: string[] = []
  let started = 0
  const start = async (): Promise<void> => {
    started += 1
    try {
      const response = await gateway.request({ method: 'POST', path, headers, body, idempotent: false })
      const answer = await response.body.text()
      if (response.statusCode !== 202) throw new Error(`${response.statusCode} ${answer}`)
    } catch (error) {
      errors.push(String(error))
      nextArrival.resolve()
    }
  }
  const receivedBefore = received
  onArrival = () => void start()
  for (let session = 0; session < sessions; session += 1) void start()
  await sleep(LEAD_MS)
  const receivedAfterLead = received
  await sleep(seconds * 1_000)
  onArrival = () => {}
  const arrived = received - receivedAfterLead
  // Starts that are still under way would count for the next load.
  const isUnderWay = (): boolean => errors.length === 0 && received - receivedBefore < started
  while (isUnderWay()) await nextArrival.promise
  await gateway.close()
  res.writeHead(errors.length > 0 ? 500 : 200).end(JSON.stringify({ arrived, errors: errors.slice(0, 3) }))
}
