// The limit of the runs that nothing but a design without these hops can pass: gateway, runner and dispatcher with nothing
// in them. No key, no check, no database, no log: only the requests, and the message over a quorum queue.
import { createServer, request, type IncomingMessage, type RequestListener } from 'node:http'
import { connect, type ConsumeMessage } from 'amqplib'
import { Pool } from 'undici'

const [role = '', target = '', amqpUrl = ''] = process.argv.slice(2)
const QUEUE = 'bench-bare'
const CONNECTIONS = 100

if (role === 'gateway') await listen(await createGateway())
else if (role === 'runner') await run()
else if (role === 'dispatcher') await listen((req, res) => void dispatch(req, res))
else throw new Error(`No such role: ${role}`)

/** Publishes each body, and answers 202. */
async function createGateway(): Promise<RequestListener> {
  const channel = await (await connect(amqpUrl, { noDelay: true })).createConfirmChannel()
  await channel.assertQueue(QUEUE, { durable: true, arguments: { 'x-queue-type': 'quorum' } })
  const accept = async (...[req, res]: Parameters<RequestListener>): Promise<void> => {
    channel.sendToQueue(QUEUE, await readAll(req), { persistent: true })
    res.writeHead(202).end()
  }
  return (req, res) => void accept(req, res)
}

/** Has each message's body sent by the dispatcher, as many at once as the queue's consumer may hold. */
async function run(): Promise<void> {
  const { origin } = new URL(target)
  const dispatcher = new Pool(origin, { connections: CONNECTIONS, pipelining: 1 })
  const channel = await (await connect(amqpUrl, { noDelay: true })).createChannel()
  await channel.assertQueue(QUEUE, { durable: true, arguments: { 'x-queue-type': 'quorum' } })
  await channel.prefetch(CONNECTIONS)
  const send = async (message: ConsumeMessage): Promise<void> => {
    const { content } = message
    const answer = await dispatcher.request({ method: 'PUT', path: '/', body: content, idempotent: false })
    await answer.body.text()
    channel.ack(message)
  }
  await channel.consume(QUEUE, (message) => void (message && send(message)))
  process.stdout.write('listening 0\n')
}

/** Posts each body to the endpoint over a connection of its own, and answers when that is answered. */
async function dispatch(...[req, res]: Parameters<RequestListener>): Promise<void> {
  const body = await readAll(req)
  const headers = { 'content-type': 'application/json', 'content-length': body.length }
  const sending = request(target, { method: 'POST', agent: false, headers }, (answer) => {
    answer.resume().on('end', () => res.writeHead(200).end('{}'))
  })
  sending.end(body)
}

async function readAll(req: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of req) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

async function listen(listener: RequestListener): Promise<void> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  process.stdout.write(`listening ${typeof address === 'object' ? address?.port : ''}\n`)
}
