import { EXAMPLE_MAX_BYTES, EXAMPLE_MAX_FIELDS, EXAMPLE_MAX_LIST_LENGTH } from '@workflow-service/contract'
import { waitUntil } from '@workflow-service/testkit'
import { tally } from '../../shared/figures.ts'
import { type Attack, manyFields } from '../attack.ts'
import type { AttackTarget } from '../target.ts'

/** A context of 10,000 characters. */
const CONTEXT = `{"text": "y", "order_id": 1, "items": [${Array<string>(3_300).fill('{}').join()}]}`

/** A list of 20,000 small objects, 200 kB: inferring its shape took time that grew with the square of its length. */
const LONG_LIST = { items: Array.from({ length: 20_000 }, (_, n) => ({ [`n${n % 7}`]: n })) }

const STARTS = 50

/** Starts, at once, with contexts as large as those of the attack. */
async function sendOrdinaryStarts(target: AttackTarget): Promise<void> {
  await target.saveSource('Ordinary', { text: 'x', order_id: 1 })
  await target.runAll('Ordinary', STARTS, CONTEXT)
}

/**
 * Fields that may be missing: the built-in agent fills each of them with null, in every item of the list in the
 * context.
 */
const nullFieldsOf = (count: number) => ({ items: [manyFields('field_', count, null)] })

/** An example close to all limits: number of fields, length of a list, and bytes. */
function largestObject(): object {
  const fieldsPerItem = 4
  const ownFields = EXAMPLE_MAX_FIELDS - EXAMPLE_MAX_LIST_LENGTH * fieldsPerItem - 1
  // Names and punctuation take less than 50 bytes for each field.
  const text = 'x'.repeat(EXAMPLE_MAX_BYTES / EXAMPLE_MAX_FIELDS - 50)
  const items = Array<object>(EXAMPLE_MAX_LIST_LENGTH).fill(manyFields('item_', fieldsPerItem, text))
  return { items, ...manyFields('field_', ownFields, text) }
}

/** A source with a large example that is allowed, and 50 starts to it. */
function toExampleAttack(name: string, example: object): Attack {
  return {
    name,
    async run({ target, expect, sendOrdinary, attack }) {
      await sendOrdinary(() => sendOrdinaryStarts(target))
      const ended = await attack(async () => {
        const { status } = await target.saveSource(name, example)
        expect(status === 201, `An example that is allowed was answered ${status}.`)
        return await target.runAll(name, STARTS, CONTEXT)
      })
      return `example of ${JSON.stringify(example).length} bytes; ${STARTS} starts of 10,000 characters: ${ended}`
    },
  }
}

const SLOW_SESSIONS = 170
const OPEN_FILES = 100
const PAYLOADS = 75
const MAX_ATTEMPTS = 5

/** What starts, sources and endpoints can do to the runner and the dispatcher. */
export const RUN_ATTACKS: readonly Attack[] = [
  {
    name: 'long-example-list',
    async run({ target, expect, attack }) {
      const { status } = await attack(() => target.saveSource('Long list', LONG_LIST))
      expect(status === 422, `The example was saved with status ${status}.`)
      return `example with a list of 20,000 objects: ${status}`
    },
  },
  toExampleAttack('largest-example', largestObject()),
  toExampleAttack('null-fields', nullFieldsOf(EXAMPLE_MAX_FIELDS - 1)),
  {
    // Names with a common beginning: a naive search compares each of them at each position of a text of 50,000
    // characters.
    name: 'source-names',
    async run({ target, expect, sendOrdinary, attack }) {
      for (let length = 1; length <= 200; length += 1) await target.saveSource('a'.repeat(length), undefined, false)
      const startMany = async (descriptions: readonly string[]): Promise<string[]> => {
        const ids: string[] = []
        for (const description of descriptions)
          ids.push(...(await target.start(await target.createWorkflow(description), 'text: y', 20)))
        return ids
      }
      await sendOrdinary(() => startMany(['a', 'aa', 'aaa'].map((name) => `Send it to "${name}".`)))
      const descriptions = ['a'.repeat(50_000), `${'a'.repeat(200)}b `.repeat(247), 'aa '.repeat(16_000)]
      const runs = await attack(async () => await target.waitForRuns(await startMany(descriptions)))
      expect(runs.length === 60, `Only ${runs.length} of 60 runs ended within 12 s.`)
      return `200 sources a, aa, aaa, …; 60 starts: ${tally(runs.map(({ status }) => status))}`
    },
  },
  {
    // More payloads at once than one source may have in flight: they wait, and none fails.
    name: 'slow-endpoint',
    services: {
      dispatcher: { env: { MAX_DELIVERIES_IN_FLIGHT_PER_SOURCE: '50' } },
      runner: { env: { RUNNER_CONCURRENCY: '300' } },
    },
    async run({ target, expect, attack }) {
      await target.saveSource('Slow')
      target.endpoint.answerWith({ status: 204, delayMs: 3_000 })
      const ended = await attack(() => target.runAll('Slow', SLOW_SESSIONS, 'text: slow', 30_000))
      expect(ended === `${SLOW_SESSIONS} × succeeded`, `Of ${SLOW_SESSIONS} runs: ${ended}.`)
      return `${SLOW_SESSIONS} sessions at once to an endpoint that takes 3 s: ${ended}`
    },
  },
  {
    // Many payloads at once need more sockets than the dispatcher has: they wait, and nothing counts as tried.
    name: 'few-files-dispatcher',
    services: { dispatcher: { openFiles: OPEN_FILES } },
    checksLatency: false,
    async run({ target, expect, attack }) {
      await target.saveSource('Endpoint')
      target.endpoint.answerWith({ status: 204, delayMs: 500 })
      const ended = await attack(() => target.runAll('Endpoint', PAYLOADS, 'text: y', 30_000))
      const { rows } = await target.system.pool.query<{ outcome: string }>(
        `SELECT outcome FROM deliveries WHERE kind = 'payload'`,
      )
      const outcomes = rows.map(({ outcome }) => outcome)
      expect(!outcomes.includes('unreachable'), `Payloads that were never tried: ${tally(outcomes)}.`)
      expect(ended === `${PAYLOADS} × succeeded`, `Of ${PAYLOADS} runs: ${ended}.`)
      return `${PAYLOADS} payloads at once, ${OPEN_FILES} file descriptors: ${tally(outcomes)}`
    },
  },
  {
    // A run whose runner dies in every attempt: it fails after five, and its session goes on.
    name: 'runner-killer',
    ends: ['runner'],
    checksLatency: false,
    async run({ target, expect, attack }) {
      const { pool } = target.system
      await target.saveSource('Endpoint')
      const workflowId = await target.createWorkflow()
      // The delivery stays in flight, so each attempt is still under way when its runner dies.
      target.endpoint.answerWith(({ text }) => (text.includes('deadly') ? 'hang' : { status: 204 }))
      const kill = async (): Promise<{ deadly: string; next: string }> => {
        const [deadly = ''] = await target.start(workflowId, 'text: deadly')
        const { rows } = await pool.query<{ id: string }>('SELECT session_id AS id FROM starts WHERE id = $1', [deadly])
        const [next = ''] = await target.start(workflowId, 'text: next', 1, rows[0]?.id)
        for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
          const query = `SELECT 1 FROM starts WHERE id = $1 AND status = 'running' AND attempts = $2`
          await waitUntil(async () => (await pool.query(query, [deadly, attempt])).rows.length > 0, {
            timeoutMs: 15_000,
            intervalMs: 10,
            message: `attempt ${attempt}`,
          })
          await target.services.runner.kill()
          // Instead of waiting 15 s until the dead runner's leases expire.
          await pool.query('UPDATE sessions SET lease_until = now() WHERE lease_until IS NOT NULL')
          await target.services.runner.restart()
        }
        return { deadly, next }
      }
      const { deadly, next } = await attack(kill)
      const runs = await target.waitForRuns([deadly, next], 15_000)
      const error = runs.find(({ id }) => id === deadly)?.error ?? 'not failed'
      expect(error.startsWith('too_many_attempts'), `The run is ${error} after ${MAX_ATTEMPTS} attempts.`)
      const status = runs.find(({ id }) => id === next)?.status
      expect(status === 'succeeded', `The next run of the session is ${status ?? 'not done'}.`)
      return `${MAX_ATTEMPTS} runners killed by one run: ${error}; next run: ${status}`
    },
  },
]
