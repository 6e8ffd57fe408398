import { EXAMPLE_MAX_BYTES, EXAMPLE_MAX_FIELDS, EXAMPLE_MAX_LIST_LENGTH } from '@workflow-service/contract'
import { waitUntil } from '@workflow-service/testkit'
import { tally } from '../../shared/figures.ts'
import type { Attack } from '../attack.ts'
import type { AttackTarget } from '../target.ts'

const CONTEXT = `{"text": "y", "order_id": 1, "items": [${Array<string>(3_300).fill('{}').join()}]}`

/** A list of 20,000 small objects, 200 kB: inferring its shape took time that grew with the square of its length. */
const LONG_LIST = { items: Array.from({ length: 20_000 }, (_, n) => ({ [`n${n % 7}`]: n })) }

/** Starts, at once, with contexts as large as those of the attack. */
async function startWithItems(target: AttackTarget, source: string, count: number): Promise<string> {
  return await target.runAll(source, Array<string>(count).fill(CONTEXT))
}

async function sendOrdinaryStarts(target: AttackTarget): Promise<void> {
  await target.saveSource('Ordinary', { text: 'x', order_id: 1 })
  await startWithItems(target, 'Ordinary', 50)
}

/**
 * Fields that may be missing: the built-in agent fills each of them with null, in every item of the list in the
 * context.
 */
const nullFieldsOf = (count: number) => ({
  items: [Object.fromEntries(Array.from({ length: count }, (_, n) => [`field_${n}`, null]))],
})

/** An example close to all limits: number of fields, length of a list, and bytes. */
function largestObject(): object {
  const fieldsPerItem = 4
  const ownFields = EXAMPLE_MAX_FIELDS - EXAMPLE_MAX_LIST_LENGTH * fieldsPerItem - 1
  // Names and punctuation take less than 50 bytes for each field.
  const text = 'x'.repeat(EXAMPLE_MAX_BYTES / EXAMPLE_MAX_FIELDS - 50)
  const fields = (prefix: string, count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, n) => [`${prefix}_${n}`, text]))
  const items = Array.from({ length: EXAMPLE_MAX_LIST_LENGTH }, (_, n) => fields(`item_${n}`, fieldsPerItem))
  return { items, ...fields('field', ownFields) }
}

/** A source with a large example that is allowed, and 50 starts to it. */
function toExampleAttack(name: string, example: object): Attack {
  return {
    name,
    sendOrdinary: sendOrdinaryStarts,
    async run(target, { expect }) {
      const { status } = await target.saveSource(name, example)
      expect(status === 201, `An example that is allowed was answered ${status}.`)
      const ended = await startWithItems(target, name, 50)
      return `example of ${JSON.stringify(example).length} bytes; 50 starts of 10,000 characters: ${ended}`
    },
  }
}

/**
 * Names with a common beginning: a naive search compares each of them at each position of a text of 50,000 characters.
 */
const sourceNames: Attack = {
  name: 'source-names',
  async prepare(target) {
    for (let length = 1; length <= 200; length += 1) await target.saveSource('a'.repeat(length), { text: 'x' }, false)
  },
  async sendOrdinary(target) {
    for (const name of ['a', 'aa', 'aaa']) await startMany(target, `Send it to "${name}".`)
  },
  async run(target, { expect }) {
    const descriptions = ['a'.repeat(50_000), `${'a'.repeat(200)}b `.repeat(247), 'aa '.repeat(16_000)]
    const ids: string[] = []
    for (const description of descriptions) ids.push(...(await startMany(target, description)))
    const runs = await target.waitForRuns(ids)
    expect(runs.length === 60, `Only ${runs.length} of 60 runs ended within 12 s.`)
    return `200 sources a, aa, aaa, …; 60 starts: ${tally(runs.map(({ status }) => status))}`
  },
}

async function startMany(target: AttackTarget, description: string): Promise<string[]> {
  return await target.start(await target.createWorkflow(description), Array<string>(20).fill('text: y'))
}

const SLOW_SESSIONS = 170

/** More payloads at once than one source may have in flight: they wait, and none fails. */
const slowEndpoint: Attack = {
  name: 'slow-endpoint',
  services: {
    dispatcher: { env: { MAX_DELIVERIES_IN_FLIGHT_PER_SOURCE: '50' } },
    runner: { env: { RUNNER_CONCURRENCY: '300' } },
  },
  async run(target, { expect }) {
    await target.saveSource('Slow', { text: 'x' })
    target.endpoint.answerWith({ status: 204, delayMs: 3_000 })
    const ended = await target.runAll('Slow', Array<string>(SLOW_SESSIONS).fill('text: slow'), 30_000)
    expect(ended === `${SLOW_SESSIONS} × succeeded`, `Of ${SLOW_SESSIONS} runs: ${ended}.`)
    return `${SLOW_SESSIONS} sessions at once to an endpoint that takes 3 s: ${ended}`
  },
}

const OPEN_FILES = 100
const PAYLOADS = 75

/** Many payloads at once need more sockets than the dispatcher has: they wait, and nothing counts as tried. */
const fewFilesDispatcher: Attack = {
  name: 'few-files-dispatcher',
  services: { dispatcher: { openFiles: OPEN_FILES } },
  checksLatency: false,
  async run(target, { expect }) {
    await target.saveSource('Endpoint', { text: 'x' })
    target.endpoint.answerWith({ status: 204, delayMs: 500 })
    const ended = await target.runAll('Endpoint', Array<string>(PAYLOADS).fill('text: y'), 30_000)
    const { rows } = await target.system.pool.query<{ outcome: string }>(
      `SELECT outcome FROM deliveries WHERE kind = 'payload'`,
    )
    const outcomes = rows.map(({ outcome }) => outcome)
    expect(!outcomes.includes('unreachable'), `Payloads that were never tried: ${tally(outcomes)}.`)
    expect(ended === `${PAYLOADS} × succeeded`, `Of ${PAYLOADS} runs: ${ended}.`)
    return `${PAYLOADS} payloads at once, ${OPEN_FILES} file descriptors: ${tally(outcomes)}`
  },
}

const MAX_ATTEMPTS = 5

/** A run whose runner dies in every attempt: it fails after five, and its session goes on. */
const runnerKiller: Attack = {
  name: 'runner-killer',
  ends: ['runner'],
  checksLatency: false,
  async run(target, { expect }) {
    const { pool } = target.system
    await target.saveSource('Endpoint', { text: 'x' })
    const workflowId = await target.createWorkflow('Send it to "Endpoint".')
    // The delivery stays in flight, so each attempt is still under way when its runner dies.
    target.endpoint.answerWith(({ text }) => (text.includes('deadly') ? 'hang' : { status: 204 }))
    const [deadly = ''] = await target.start(workflowId, ['text: deadly'])
    const { rows } = await pool.query<{ id: string }>('SELECT session_id AS id FROM starts WHERE id = $1', [deadly])
    const [next = ''] = await target.start(workflowId, ['text: next'], rows[0]?.id)
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
    const runs = await target.waitForRuns([deadly, next], 15_000)
    const error = runs.find(({ id }) => id === deadly)?.error ?? 'not failed'
    expect(error.startsWith('too_many_attempts'), `The run is ${error} after ${MAX_ATTEMPTS} attempts.`)
    const status = runs.find(({ id }) => id === next)?.status
    expect(status === 'succeeded', `The next run of the session is ${status ?? 'not done'}.`)
    return `${MAX_ATTEMPTS} runners killed by one run: ${error}; next run: ${status}`
  },
}

/** What starts, sources and endpoints can do to the runner and the dispatcher. */
export const RUN_ATTACKS: readonly Attack[] = [
  {
    name: 'long-example-list',
    async run(target, { expect }) {
      const { status } = await target.saveSource('Long list', LONG_LIST)
      const ended = status === 201 ? await startWithItems(target, 'Long list', 1) : 'no start'
      expect(status === 422, `The example was saved with status ${status}.`)
      return `example with a list of 20,000 objects: ${status}; ${ended}`
    },
  },
  {
    name: 'stored-example-list',
    sendOrdinary: sendOrdinaryStarts,
    async run(target) {
      const { sourceId } = await target.saveSource('Stored list', { items: [] })
      await target.storeExample(sourceId, LONG_LIST)
      const ended = await startWithItems(target, 'Stored list', 50)
      return `example with a list of 20,000 objects, stored earlier; 50 starts: ${ended}`
    },
  },
  toExampleAttack('largest-example', largestObject()),
  toExampleAttack('null-fields', nullFieldsOf(EXAMPLE_MAX_FIELDS - 1)),
  {
    // A payload of 120 MB. Once, writing it to the journal took over 5 s, counted as a database that does not answer,
    // and was repeated for ever, while every other run waited.
    name: 'stored-null-fields',
    ends: ['runner'],
    async run(target) {
      const { sourceId } = await target.saveSource('Stored nulls', { text: 'x' })
      await target.storeExample(sourceId, nullFieldsOf(12_000))
      const ended = await startWithItems(target, 'Stored nulls', 3)
      return `12,000 fields of null, 3 starts of 10,000 characters: ${ended}; then SIGTERM`
    },
    async checkAfterwards(target, expect) {
      const { code, signal } = await target.services.runner.process.stop(40_000)
      expect(code === 0, `The runner ended with ${signal ?? code} after SIGTERM.`)
    },
  },
  sourceNames,
  slowEndpoint,
  fewFilesDispatcher,
  runnerKiller,
]
