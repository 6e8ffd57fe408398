import { Agent, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { ERROR_DETAILS_MAX } from '@workflow-service/contract'
import { type Attack, openExpectations, repeatFor, tally } from '../attack.ts'

const START_PATH = '/v1/workflows/01890a5d-ac96-774b-bcce-b302099a8057/start'

/** Patterns that backtrack need time that grows with the square of such a header. */
export const contentType: Attack = {
  name: 'content-type',
  async run({ services, headers }, { seconds }) {
    const { expect, violations } = openExpectations()
    const agent = new Agent({ keepAlive: true, maxSockets: 8 })
    const values = [' ', 'a=b; ', ';', '"', 'charset '].map(
      (text) => `application/json;${text.repeat(15_000 / text.length)}x`,
    )
    values.push(`application/json${' '.repeat(15_000)}x`)
    const answers: number[] = []
    const send = async (): Promise<void> => {
      const value = values[answers.length % values.length] ?? ''
      const { status } = await post(
        agent,
        services.gateway.url + START_PATH,
        { ...headers, 'content-type': value },
        '{}',
      )
      answers.push(status)
    }
    const count = await repeatFor({ seconds, connections: 8 }, send)
    agent.destroy()
    expect(
      answers.every((status) => status === 400),
      `The answers were ${tally(answers)} instead of 400.`,
    )
    return { summary: `${count} requests with a Content-Type of 15 kB`, violations }
  },
}

export const unknownFields: Attack = {
  name: 'unknown-fields',
  /** Bodies of ordinary size, as many at once. */
  async sendOrdinary({ services, headers }, { seconds }) {
    const agent = new Agent({ keepAlive: true, maxSockets: 4 })
    const body = JSON.stringify({ context: 'An order has arrived.' })
    await repeatFor({ seconds, connections: 4 }, async () => {
      await post(agent, services.gateway.url + START_PATH, headers, body)
    })
    agent.destroy()
  },
  async run({ services, headers }, { seconds }) {
    const { expect, violations } = openExpectations()
    const agent = new Agent({ keepAlive: true, maxSockets: 4 })
    const body = JSON.stringify(Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`f${n}`, 1])))
    let largest = 0
    const answers: number[] = []
    const send = async (): Promise<void> => {
      const { status, text } = await post(agent, services.gateway.url + START_PATH, headers, body)
      answers.push(status)
      const { error } = JSON.parse(text) as { error: { details?: unknown[] } }
      largest = Math.max(largest, error.details?.length ?? 0)
    }
    const count = await repeatFor({ seconds, connections: 4 }, send)
    agent.destroy()
    expect(largest <= ERROR_DETAILS_MAX, `An error had ${largest} details.`)
    return { summary: `${count} bodies with 20,000 unknown fields: ${tally(answers)}`, violations }
  },
}

const CONNECTIONS = 2_100

export const slowBodies: Attack = {
  name: 'slow-bodies',
  async run({ services, headers }, { seconds }) {
    const head = `POST ${START_PATH} HTTP/1.1\r\nHost: x\r\nAuthorization: ${headers['authorization']}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n`
    const sockets: Socket[] = []
    for (let number = 0; number < CONNECTIONS; number += 1) {
      sockets.push(openSocket(services.gateway.url, head).socket)
      if (number % 100 === 0) await sleep(10)
    }
    await repeatFor({ seconds, connections: 1 }, async () => {
      for (const socket of sockets) if (socket.writable) socket.write(' ')
      await sleep(1_000)
    })
    const open = sockets.filter(({ writable }) => writable).length
    for (const socket of sockets) socket.destroy()
    return {
      summary: `${CONNECTIONS} connections with a body byte by byte, ${open} still open at the end`,
      violations: [],
    }
  },
}

/** Requests whose meaning servers disagree about, or that are none. */
const MALFORMED: readonly (string | Buffer)[] = [
  'hello\r\n\r\n',
  Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x0d, 0x0a, 0x0d, 0x0a]),
  Buffer.alloc(20_000, 0),
  'GET / HTTP/1.1\nHost: x\n\n',
  'GET / HTTP/1.1\r\nHost: x\nA: b\r\n\r\n',
  'GET / HTTP/1.1\rHost: x\r\r',
  'GET / HTTP/1.1\r\nHost: x\r\na: b\0c\r\n\r\n',
  'GET / HTTP/1.1\r\nHost: x\r\n a: folded\r\n\r\n',
  'GET / HTTP/1.1\r\nHost: x\r\na : b\r\n\r\n',
  'GET / HTTP/9.9\r\nHost: x\r\n\r\n',
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  `GET / HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(100_000)}\r\n\r\n`,
  `GET /${'x'.repeat(100_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
  `GET / HTTP/1.1\r\nHost: x\r\n${'a: b\r\n'.repeat(10_000)}\r\n`,
  'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab',
  'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n',
  'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n',
  'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n',
  'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n',
  'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n',
  'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n',
  `POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;${'x'.repeat(50_000)}\r\na\r\n0\r\n\r\n`,
]

export const malformedHttp: Attack = {
  name: 'malformed-http',
  async run({ services }) {
    const { expect, violations } = openExpectations()
    const answers: string[] = []
    for (const service of ['gateway', 'dispatcher'] as const) {
      for (const [index, bytes] of MALFORMED.entries()) {
        const { socket, closed } = openSocket(services[service].url, bytes)
        // One that a server takes for an unfinished request stays open until the server's deadline, which is not waited for.
        socket.setTimeout(2_000, () => socket.destroy())
        const answer = describeAnswer(await closed)
        answers.push(answer)
        expect(!answer.startsWith('unexpected'), `${service}, malformed request ${index}: ${answer}`)
      }
    }
    return { summary: `${answers.length} malformed requests: ${tally(answers)}`, violations }
  },
}

/** The status and code of exactly one answer in the contract's form; "closed" without one. */
function describeAnswer(received: string): string {
  if (received === '') return 'closed'
  const [head = '', body = ''] = received.split('\r\n\r\n')
  const status = /^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1]
  const length = /^content-length: (\d+)$/im.exec(head)?.[1]
  if (Number(length) !== Buffer.byteLength(body) || received.length > head.length + 4 + body.length)
    return `unexpected: ${received.slice(0, 200)}`
  try {
    const { error } = JSON.parse(body) as { error: { code: string; message: string; request_id: string } }
    const isComplete = error.code !== '' && error.message !== '' && error.request_id !== ''
    return isComplete ? `${status} ${error.code}` : `unexpected: ${body}`
  } catch {
    return `unexpected: ${received.slice(0, 200)}`
  }
}

/** Opens a connection and writes to it. `closed` resolves to everything received when the connection has closed. */
function openSocket(url: string, bytes: string | Buffer): { socket: Socket; closed: Promise<string> } {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port) })
  let received = ''
  const { promise: closed, resolve } = Promise.withResolvers<string>()
  socket.setEncoding('utf8').on('data', (text: string) => (received += text))
  socket.on('error', () => {}).once('close', () => resolve(received))
  socket.write(bytes)
  return { socket, closed }
}

async function post(
  agent: Agent,
  url: string,
  headers: Record<string, string>,
  body: string,
): Promise<{ status: number; text: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; text: string }>()
  const req = request(url, { method: 'POST', agent, headers }, (res) => {
    let text = ''
    res.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
    res.once('end', () => resolve({ status: res.statusCode ?? 0, text })).once('error', reject)
  })
  req.once('error', reject).end(body)
  return promise
}
