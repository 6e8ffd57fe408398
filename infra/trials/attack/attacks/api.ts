import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { ERROR_DETAILS_MAX } from '@workflow-service/contract'
import { createApiKey } from '@workflow-service/database'
import { apiHeadersOf, createOrganization } from '../../shared/customers.ts'
import { tally } from '../../shared/figures.ts'
import { requestOnce, runLoad, startLoad } from '../../shared/load.ts'
import { seedWorkflows } from '../../shared/seed.ts'
import { type Attack, openSocket, toHead } from '../attack.ts'
import type { AttackTarget } from '../target.ts'

const START_PATH = '/v1/workflows/01890a5d-ac96-774b-bcce-b302099a8057/start'

type Headers = Readonly<Record<string, string>>

/** Patterns that backtrack need time that grows with the square of such a header. */
const contentType: Attack = {
  name: 'content-type',
  async run({ services, headers }, { seconds, expect }) {
    const values = [' ', 'a=b; ', ';', '"', 'charset '].map(
      (text) => `application/json;${text.repeat(15_000 / text.length)}x`,
    )
    values.push(`application/json${' '.repeat(15_000)}x`)
    const statuses: number[] = []
    await runLoad({
      callers: 8,
      seconds,
      async call(number) {
        const value = values[number % values.length] ?? ''
        const sent = { ...headers, 'content-type': value }
        statuses.push((await post(services.gateway.url + START_PATH, sent, '{}')).status)
      },
    })
    expect(
      statuses.every((status) => status === 400),
      `The answers were ${tally(statuses)} instead of 400.`,
    )
    return `${statuses.length} requests with a Content-Type of 15 kB`
  },
}

const unknownFields: Attack = {
  name: 'unknown-fields',
  /** Bodies of ordinary size, as many at once. */
  async sendOrdinary({ services, headers }, { seconds }) {
    const body = JSON.stringify({ context: 'An order has arrived.' })
    await runLoad({ callers: 4, seconds, call: () => post(services.gateway.url + START_PATH, headers, body) })
  },
  async run({ services, headers }, { seconds, expect }) {
    const body = JSON.stringify(Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`f${n}`, 1])))
    let largest = 0
    const statuses: number[] = []
    await runLoad({
      callers: 4,
      seconds,
      async call() {
        const { status, text } = await post(services.gateway.url + START_PATH, headers, body)
        statuses.push(status)
        const { error } = JSON.parse(text) as { error: { details?: unknown[] } }
        largest = Math.max(largest, error.details?.length ?? 0)
      },
    })
    expect(largest <= ERROR_DETAILS_MAX, `An error had ${largest} details.`)
    return `${statuses.length} bodies with 20,000 unknown fields: ${tally(statuses)}`
  },
}

async function post(url: string, headers: Headers, body: string): Promise<{ status: number; text: string }> {
  return await requestOnce(url, { method: 'POST', headers, body })
}

const CONNECTIONS = 2_100

const slowBodies: Attack = {
  name: 'slow-bodies',
  async run({ services, headers }, { seconds }) {
    const head = toHead(
      `POST ${START_PATH} HTTP/1.1`,
      'Host: x',
      `Authorization: ${headers['authorization']}`,
      'Content-Type: application/json',
      'Content-Length: 1000',
    )
    const sockets: Socket[] = []
    for (let number = 0; number < CONNECTIONS; number += 1) {
      sockets.push(openSocket(services.gateway.url, head).socket)
      if (number % 100 === 0) await sleep(10)
    }
    const writing = startLoad({
      seconds,
      spacingMs: 1_000,
      async call() {
        for (const socket of sockets) if (socket.writable) socket.write(' ')
      },
    })
    await writing.done
    const open = sockets.filter(({ writable }) => writable).length
    for (const socket of sockets) socket.destroy()
    return `${CONNECTIONS} connections with a body byte by byte, ${open} still open at the end`
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

const malformedHttp: Attack = {
  name: 'malformed-http',
  async run({ services }, { expect }) {
    const answers: string[] = []
    for (const service of ['gateway', 'dispatcher'] as const) {
      for (const [index, bytes] of MALFORMED.entries()) {
        const { socket, closed } = openSocket(services[service].url, bytes)
        // One that a server takes for an unfinished request stays open until the server's deadline, which is not waited
        // for.
        socket.setTimeout(2_000, () => socket.destroy())
        const answer = describeAnswer(await closed)
        answers.push(answer)
        expect(!answer.startsWith('unexpected'), `${service}, malformed request ${index}: ${answer}`)
      }
    }
    return `${answers.length} malformed requests: ${tally(answers)}`
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

const KEY_LIMIT = 1_000
const KEY_CALLERS = 16

/** Keys with a right checksum cost a query each, and the victim has the same address. */
const forgedKeys: Attack = {
  name: 'forged-keys',
  services: { gateway: { env: { RATE_LIMIT_PER_MINUTE: String(KEY_LIMIT) } } },
  async run({ services: { gateway } }, { seconds, expect }) {
    const countLookUps = async (): Promise<number> => {
      const { text } = await requestOnce(`${gateway.metricsUrl}/metrics`)
      return Number(/^gateway_key_look_ups_total\S* (\d+)$/m.exec(text)?.[1])
    }
    const before = await countLookUps()
    const statuses: number[] = []
    const sendForged = async (): Promise<void> => {
      const headers = { authorization: `Bearer ${createApiKey().key}` }
      statuses.push((await requestOnce(`${gateway.url}/v1/organization`, { headers })).status)
    }
    // On a slow machine the limit is reached later.
    for (let round = 0; round < 3 && statuses.length < 2 * KEY_LIMIT; round += 1)
      await runLoad({ seconds, callers: KEY_CALLERS, call: sendForged })
    const lookUps = (await countLookUps()) - before
    // Requests that are under way when the limit is reached, and the victim's key, which is looked up every 3 seconds.
    const allowed = KEY_LIMIT + KEY_CALLERS + 2 * 3 * seconds
    expect(lookUps <= allowed, `${lookUps} look-ups, although the limit of failures is ${KEY_LIMIT}.`)
    return `forged keys from one address: ${tally(statuses)}; ${lookUps} look-ups`
  },
}

const PAGES_AT_ONCE = 40
const SEARCHED_WORKFLOWS = 1_500
/** The limit of a page, plus the largest document of this attack, which may exceed it. */
const MAX_PAGE_MIB = 3

/** Each of the 100 documents lists 4,000 users: 30 MB a page if nothing ends it. */
const largePages: Attack = {
  name: 'large-pages',
  /** As many pages of the same size, of an organization whose large workflows have no users. */
  async sendOrdinary({ system, services }) {
    const organization = await createOrganization(system)
    await seedWorkflows(system, organization, 50, { detailed: 1, description: 'x'.repeat(40_000) })
    await readPages({ services, headers: apiHeadersOf(organization) })
  },
  async prepare({ system: { pool }, attacker: { organizationId } }) {
    await pool.query(
      `INSERT INTO users (id, organization_id, email, first_name, last_name)
       SELECT gen_random_uuid(), $1, 'attacker' || n || '@attack.test', 'First name', 'Last name ' || n
       FROM generate_series(1, 4000) n`,
      [organizationId],
    )
    await pool.query(
      `INSERT INTO workflows (id, organization_id, name, description, scope, is_active, search_text)
       SELECT gen_random_uuid(), $1, 'Workflow ' || n, '', 'company_wide', true, 'workflow'
       FROM generate_series(1, 100) n`,
      [organizationId],
    )
  },
  async run(target, { expect }) {
    const pages = await readPages(target)
    const largestMiB = Math.max(...pages.map(({ text }) => Buffer.byteLength(text))) / 2 ** 20
    expect(largestMiB <= MAX_PAGE_MIB, `A page had ${largestMiB.toFixed(1)} MiB.`)
    const statuses = tally(pages.map(({ status }) => status))
    return `${PAGES_AT_ONCE} pages of 100 workflows, 4,000 users each: ${statuses}; at most ${largestMiB.toFixed(1)} MiB`
  },
}

async function readPages({ services, headers }: Pick<AttackTarget, 'services' | 'headers'>) {
  const url = `${services.gateway.url}/v1/workflows?limit=100`
  return await Promise.all(Array.from({ length: PAGES_AT_ONCE }, () => requestOnce(url, { headers })))
}

/** The index returns every workflow as a candidate, and none contains the text. */
const searches: Attack = {
  name: 'searches',
  async prepare({ system, attacker }) {
    const description = 'abcdefghijklmnopqrstuvwxyz '.repeat(740)
    await seedWorkflows(system, attacker, SEARCHED_WORKFLOWS, { detailed: 1, description })
  },
  async run({ services, headers }, { seconds }) {
    const statuses: number[] = []
    await runLoad({
      seconds,
      callers: PAGES_AT_ONCE,
      async call(number) {
        const text = encodeURIComponent(`xyz abc${'defghijklm'.slice(0, number % 10)}q`)
        const url = `${services.gateway.url}/v1/workflows?limit=100&search=${text}`
        statuses.push((await requestOnce(url, { headers })).status)
      },
    })
    return `searches in ${SEARCHED_WORKFLOWS} workflows of 20 kB, ${PAGES_AT_ONCE} at once: ${tally(statuses)}`
  },
}

/** Enough for the service itself and its connections to PostgreSQL and RabbitMQ. */
const OPEN_FILES = 100

/** Idle connections take every file descriptor of the gateway. */
const fewFilesGateway: Attack = {
  name: 'few-files-gateway',
  services: { gateway: { openFiles: OPEN_FILES } },
  checksLatency: false,
  async run({ services: { gateway }, headers }, { seconds, expect }) {
    const sockets = Array.from({ length: 3 * OPEN_FILES }, () => openSocket(gateway.url).socket)
    await sleep(seconds * 1_000)
    for (const socket of sockets) socket.destroy()
    await sleep(500)
    const { status } = await requestOnce(`${gateway.url}/v1/organization`, { headers })
    expect(status === 200, `After the attack the gateway answered ${status}.`)
    return `${sockets.length} idle connections to a gateway with ${OPEN_FILES} file descriptors`
  },
}

/** What requests to the public API can do. */
export const API_ATTACKS: readonly Attack[] = [
  contentType,
  unknownFields,
  malformedHttp,
  slowBodies,
  forgedKeys,
  largePages,
  searches,
  fewFilesGateway,
]
