import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { ERROR_DETAILS_MAX } from '@workflow-service/contract'
import { createApiKey } from '@workflow-service/database'
import { apiHeadersOf, createOrganization } from '../../shared/customers.ts'
import { tally } from '../../shared/figures.ts'
import { seedWorkflows } from '../../shared/seed.ts'
import { readMetric } from '../../shared/system.ts'
import { type Attack, holdConnections, manyFields, openSocket, toHead } from '../attack.ts'
import type { AttackRequest } from '../target.ts'

const START_PATH = '/v1/workflows/01890a5d-ac96-774b-bcce-b302099a8057/start'
const postStart = (body: string) => ({ method: 'POST', path: START_PATH, body }) as const

/** Patterns that backtrack need time that grows with the square of such a header. */
const CONTENT_TYPES = [
  ...[' ', 'a=b; ', ';', '"', 'charset '].map((text) => `application/json;${text.repeat(15_000 / text.length)}x`),
  `application/json${' '.repeat(15_000)}x`,
]

const CONNECTIONS = 2_100

const KEY_LIMIT = 1_000
const KEY_CALLERS = 16

const PAGES_AT_ONCE = 40
const SEARCHED_WORKFLOWS = 1_500
/** The limit of a page, plus the largest document of this attack, which may exceed it. */
const MAX_PAGE_MIB = 3

function searchOf(n: number): AttackRequest {
  const text = encodeURIComponent(`xyz abc${'defghijklm'.slice(0, n % 10)}q`)
  return { path: `/v1/workflows?limit=100&search=${text}` }
}

/** Enough for the service itself and its connections to PostgreSQL and RabbitMQ. */
const OPEN_FILES = 100

/** What requests to the public API can do. */
export const API_ATTACKS: readonly Attack[] = [
  {
    name: 'content-type',
    async run({ target, seconds, expect, attack }) {
      const requestOf = (n: number) => {
        const headers = { ...target.headers, 'content-type': CONTENT_TYPES[n % CONTENT_TYPES.length] ?? '' }
        return { ...postStart('{}'), headers }
      }
      const responses = await attack(() => target.repeat({ to: 'gateway', callers: 8, seconds }, requestOf))
      expect(/^\d+ × 400$/.test(responses), `The responses were ${responses} instead of 400.`)
      return `requests with a Content-Type of 15 kB: ${responses}`
    },
  },
  {
    name: 'unknown-fields',
    async run({ target, seconds, expect, sendOrdinary, attack }) {
      const load = { to: 'gateway', callers: 4, seconds } as const
      // Bodies of ordinary size, as many at once.
      await sendOrdinary(() =>
        target.repeat(load, () => postStart(JSON.stringify({ context: 'An order has arrived.' }))),
      )
      const body = JSON.stringify(manyFields('f', 20_000, 1))
      let largest = 0
      const readDetails = (text: string): void => {
        const { error } = JSON.parse(text) as { error: { details?: unknown[] } }
        largest = Math.max(largest, error.details?.length ?? 0)
      }
      const responses = await attack(() => target.repeat(load, () => postStart(body), readDetails))
      expect(largest <= ERROR_DETAILS_MAX, `An error had ${largest} details.`)
      return `bodies with 20,000 unknown fields: ${responses}`
    },
  },
  {
    name: 'slow-bodies',
    async run({ target: { services, headers }, seconds, attack }) {
      const head = toHead(
        `POST ${START_PATH} HTTP/1.1`,
        'Host: x',
        `Authorization: ${headers['authorization']}`,
        'Content-Type: application/json',
        'Content-Length: 1000',
      )
      const open = await attack(async () => {
        const sockets: Socket[] = []
        for (let number = 0; number < CONNECTIONS; number += 1) {
          sockets.push(openSocket(services.gateway.url, head))
          if (number % 100 === 0) await sleep(10)
        }
        for (let second = 0; second < seconds; second += 1) {
          for (const socket of sockets) if (socket.writable) socket.write(' ')
          await sleep(1_000)
        }
        const { length } = sockets.filter(({ writable }) => writable)
        for (const socket of sockets) socket.destroy()
        return length
      })
      return `${CONNECTIONS} connections with a body byte by byte, ${open} still open at the end`
    },
  },
  {
    // Keys with a right checksum cost a query each, and the victim has the same address.
    name: 'forged-keys',
    services: { gateway: { env: { RATE_LIMIT_PER_MINUTE: String(KEY_LIMIT) } } },
    async run({ target, seconds, expect, attack }) {
      const countLookUps = async () => await readMetric(target.services.gateway, 'gateway_key_look_ups_total')
      const sent = { count: 0 }
      const requestOf = () => {
        sent.count += 1
        return { path: '/v1/organization', headers: { authorization: `Bearer ${createApiKey().key}` } }
      }
      const responses: string[] = []
      let before = 0
      await attack(async () => {
        before = await countLookUps()
        // On a slow machine the limit is reached later.
        for (let round = 0; round < 3 && sent.count < 2 * KEY_LIMIT; round += 1)
          responses.push(await target.repeat({ to: 'gateway', callers: KEY_CALLERS, seconds }, requestOf))
      })
      const lookUps = (await countLookUps()) - before
      // Requests that are under way when the limit is reached, and the victim's key, which is looked up every 3 s.
      const allowed = KEY_LIMIT + KEY_CALLERS + 2 * 3 * seconds
      expect(lookUps <= allowed, `${lookUps} look-ups, although the limit of failures is ${KEY_LIMIT}.`)
      return `forged keys from one address: ${responses.join('; ')}; ${lookUps} look-ups`
    },
  },
  {
    // Each of the 100 documents lists 4,000 users: 30 MB a page if nothing ends it.
    name: 'large-pages',
    async run({ target: { system, attacker, send, headers }, expect, sendOrdinary, attack }) {
      await system.pool.query(
        `INSERT INTO users (id, organization_id, email, first_name, last_name)
         SELECT gen_random_uuid(), $1, 'attacker' || n || '@attack.test', 'First name', 'Last name ' || n
         FROM generate_series(1, 4000) n`,
        [attacker.organizationId],
      )
      await system.pool.query(
        `INSERT INTO workflows (id, organization_id, name, description, scope, is_active, search_text)
         SELECT gen_random_uuid(), $1, 'Workflow ' || n, '', 'company_wide', true, 'workflow'
         FROM generate_series(1, 100) n`,
        [attacker.organizationId],
      )
      const readPages = async (of: Record<string, string>) => {
        const request = { path: '/v1/workflows?limit=100', headers: of }
        return await Promise.all(Array.from({ length: PAGES_AT_ONCE }, () => send('gateway', request)))
      }
      // As many pages of the same size, of an organization whose large workflows have no users.
      await sendOrdinary(async () => {
        const organization = await createOrganization(system)
        await seedWorkflows(system, organization, 50, { detailed: 1, description: 'x'.repeat(40_000) })
        await readPages(apiHeadersOf(organization))
      })
      const pages = await attack(() => readPages(headers))
      const largestMiB = Math.max(...pages.map(({ text }) => Buffer.byteLength(text))) / 2 ** 20
      expect(largestMiB <= MAX_PAGE_MIB, `A page had ${largestMiB.toFixed(1)} MiB.`)
      const statuses = tally(pages.map(({ status }) => status))
      return `${PAGES_AT_ONCE} pages of 100 workflows, 4,000 users each: ${statuses}; at most ${largestMiB.toFixed(1)} MiB`
    },
  },
  {
    // The index returns every workflow as a candidate, and none contains the text.
    name: 'searches',
    async run({ target, seconds, attack }) {
      const description = 'abcdefghijklmnopqrstuvwxyz '.repeat(740)
      await seedWorkflows(target.system, target.attacker, SEARCHED_WORKFLOWS, { detailed: 1, description })
      const responses = await attack(() => target.repeat({ to: 'gateway', callers: PAGES_AT_ONCE, seconds }, searchOf))
      return `searches in ${SEARCHED_WORKFLOWS} workflows of 20 kB, ${PAGES_AT_ONCE} at once: ${responses}`
    },
  },
  {
    // Idle connections take every file descriptor of the gateway.
    name: 'few-files-gateway',
    services: { gateway: { openFiles: OPEN_FILES } },
    checksLatency: false,
    async run({ target: { services, send }, seconds, expect, attack }) {
      await attack(() => holdConnections(services.gateway.url, { count: 3 * OPEN_FILES, seconds }))
      await sleep(500)
      const { status } = await send('gateway', { path: '/v1/organization' })
      expect(status === 200, `After the attack the gateway answered ${status}.`)
      return `${3 * OPEN_FILES} idle connections to a gateway with ${OPEN_FILES} file descriptors`
    },
  },
]
