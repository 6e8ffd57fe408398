// The customer's endpoint: answers each POST after a delay, and says how many came and when the last ones did; who asks
// for `/next` is answered when the next one has come. It is also the load: told to, it keeps starts on their way to
// itself, so that nobody has to ask what has arrived.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { Pool } from 'undici'

/** What to start, as `PUT /load` takes it. */
export interface RunLoad {
  readonly origin: string
  readonly path: string
  readonly headers: Record<string, string>
  readonly body: string
  /** Starts, each in a session of its own, that are on their way at once. */
  readonly sessions: number
  readonly seconds: number
}

/** Until answers come as evenly as starts leave, none is counted. */
const LEAD_MS = 500

const [delayMs = '0'] = process.argv.slice(2)
let received = 0
let arrivals: { text: string; at: number }[] = []
let onArrival = (): void => {}
let nextArrival = Promise.withResolvers<void>()

const server = createServer((req, res) => {
  if (req.method === 'PUT') void carryOutLoad(req, res)
  else if (req.method === 'POST') takePayload(req, res)
  else if (req.url === '/next') void nextArrival.promise.then(() => res.writeHead(204).end())
  else {
    res.end(JSON.stringify({ received, arrivals }))
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
    if (arrivals.length < 1_000) arrivals.push({ text, at })
    const isVerification = text.includes('service.webhook.verification')
    if (delayMs === '0' || isVerification) res.writeHead(204).end()
    else setTimeout(() => res.writeHead(204).end(), Number(delayMs))
    onArrival()
    nextArrival.resolve()
    nextArrival = Promise.withResolvers()
  })
}

/** Starts again for each payload that arrives, until the time is over; answers with how many came in it. */
async function carryOutLoad(req: IncomingMessage, res: ServerResponse): Promise<void> {
  const chunks: Buffer[] = []
  for await (const chunk of req) chunks.push(chunk as Buffer)
  const load = JSON.parse(Buffer.concat(chunks).toString()) as RunLoad
  const gateway = new Pool(load.origin, { connections: load.sessions, pipelining: 1 })
  const faults: string[] = []
  const fail = (fault: string): void => {
    faults.push(fault)
    nextArrival.resolve()
  }
  const start = async (): Promise<void> => {
    const { path, headers, body } = load
    const answer = await gateway.request({ method: 'POST', path, headers, body, idempotent: false })
    const text = await answer.body.text()
    if (answer.statusCode !== 202) fail(`${answer.statusCode} ${text}`)
  }
  let started = 0
  const startOne = (): void => {
    started += 1
    void start().catch((error: unknown) => fail(String(error)))
  }
  const atFirst = received
  onArrival = startOne
  for (let session = 0; session < load.sessions; session += 1) startOne()
  await pause(LEAD_MS)
  const before = received
  await pause(load.seconds * 1_000)
  onArrival = () => {}
  const arrived = received - before
  // What is still on its way would count for the next load.
  const isUnderWay = (): boolean => faults.length === 0 && received - atFirst < started
  while (isUnderWay()) await nextArrival.promise
  await gateway.close()
  res.writeHead(faults.length > 0 ? 500 : 200).end(JSON.stringify({ arrived, faults: faults.slice(0, 3) }))
}
