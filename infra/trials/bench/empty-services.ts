// A baseline of the runs: gateway, runner and dispatcher with the same HTTP requests and the same hop over a quorum
// queue, and nothing else: no authentication, no validation, no database, no log.
// Usage: empty-services.ts gateway|runner|dispatcher TARGET_URL AMQP_URL
import { createServer, request, type RequestListener } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { listen } from '@workflow-service/testkit'
import { connect, type ConsumeMessage } from 'amqplib'
import { Pool } from 'undici'

const [role = '', targetUrl = '', amqpUrl = ''] = process.argv.slice(2)
const QUEUE = 'bench-empty-services'
const CONNECTIONS = 100

if (role === 'gateway') await serve(await createGateway())
else if (role === 'runner') await startRunner()
else if (role === 'dispatcher') await serve((req, res) => void dispatch(req, res))
else throw new Error(`Unknown role: ${role}`)

/** Publishes each request's body, and answers 202. */
async function createGateway(): Promise<RequestListener> {
  const channel = await (await connect(amqpUrl, { noDelay: true })).createConfirmChannel()
  await channel.assertQueue(QUEUE, { durable: true, arguments: { 'x-queue-type': 'quorum' } })
  const accept = async (...[req, res]: Parameters<RequestListener>): Promise<void> => {
    channel.sendToQueue(QUEUE, await buffer(req), { persistent: true })
    res.writeHead(202).end()
  }
  return (req, res) => void accept(req, res)
}

/** Sends each message's body to the dispatcher, up to CONNECTIONS at once. */
async function startRunner(): Promise<void> {
  const { origin } = new URL(targetUrl)
  const dispatcher = new Pool(origin, { connections: CONNECTIONS, pipelining: 1 })
  const channel = await (await connect(amqpUrl, { noDelay: true })).createChannel()
  await channel.assertQueue(QUEUE, { durable: true, arguments: { 'x-queue-type': 'quorum' } })
  await channel.prefetch(CONNECTIONS)
  const send = async (message: ConsumeMessage): Promise<void> => {
    const { content } = message
    const response = await dispatcher.request({ method: 'PUT', path: '/', body: content, idempotent: false })
    await response.body.text()
    channel.ack(message)
  }
  await channel.consume(QUEUE, (message) => void (message && send(message)))
  process.stdout.write('listening 0\n')
}

/** Posts each body to the endpoint over a new connection, as the dispatcher does, and answers after the endpoint. */
async function dispatch(...[req, res]: Parameters<RequestListener>): Promise<void> {
  const body = await buffer(req)
  const headers = { 'content-type': 'application/json', 'content-length': body.length }
  const outbound = request(targetUrl, { method: 'POST', agent: false, headers }, (response) => {
    response.resume().on('end', () => res.writeHead(200).end('{}'))
  })
  outbound.end(body)
}

async function serve(listener: RequestListener): Promise<void> {
  process.stdout.write(`listening ${await listen(createServer(listener))}\n`)
}
