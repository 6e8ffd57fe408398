// The customer's endpoint: answers each POST after a delay, and says how many came and when the last ones did.
import { createServer } from 'node:http'

const [delayMs = '0'] = process.argv.slice(2)
let received = 0
let arrivals: { text: string; at: number }[] = []

const server = createServer((req, res) => {
  if (req.method === 'GET') {
    if (req.url === '/count') {
      res.end(JSON.stringify({ received }))
      return
    }
    res.end(JSON.stringify({ received, arrivals }))
    arrivals = []
    return
  }
  const at = performance.timeOrigin + performance.now()
  const chunks: Buffer[] = []
  req.on('data', (chunk: Buffer) => chunks.push(chunk))
  req.on('end', () => {
    received += 1
    if (arrivals.length < 10_000) arrivals.push({ text: Buffer.concat(chunks).toString(), at })
    setTimeout(() => res.writeHead(204).end(), Number(delayMs))
  })
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  process.stdout.write(`listening ${typeof address === 'object' ? address?.port : ''}\n`)
})
