import { EXAMPLE_MAX_BYTES, EXAMPLE_MAX_FIELDS, EXAMPLE_MAX_LIST_LENGTH } from '@workflow-service/contract'
import { type Attack, openExpectations, tally } from '../attack.ts'
import type { AttackTarget } from '../attack-target.ts'

const CONTEXT = `{"text": "y", "order_id": 1, "items": [${Array<string>(3_300).fill('{}').join()}]}`

/** A list of 20,000 small objects, 200 kB: inferring its shape took time that grew with the square of its length. */
const LONG_LIST = { items: Array.from({ length: 20_000 }, (_, n) => ({ [`n${n % 7}`]: n })) }

/** An example close to all limits: number of fields, length of a list, and bytes. */
const LARGEST = largestObject()

/** Fields that may be missing: the built-in agent fills each of them with null, in every item of the list in the context. */
const nullFieldsOf = (count: number) => ({
  items: [Object.fromEntries(Array.from({ length: count }, (_, n) => [`field_${n}`, null]))],
})

/** The starts of these attacks to an ordinary source; their contexts are as large as those of the attack. */
async function sendOrdinaryStarts(target: AttackTarget): Promise<void> {
  await target.saveSource('Ordinary', { text: 'x', order_id: 1 })
  await startAndWait(target, 'Ordinary', 50)
}

export const longExampleList: Attack = {
  name: 'long-example-list',
  async run(target) {
    const { expect, violations } = openExpectations()
    const { status } = await target.saveSource('Long list', LONG_LIST)
    const ended = status === 201 ? await startAndWait(target, 'Long list', 1) : 'no start'
    expect(status === 422, `The example was saved with status ${status}.`)
    return { summary: `example with a list of 20,000 objects: ${status}; ${ended}`, violations }
  },
}

export const storedExampleList: Attack = {
  name: 'stored-example-list',
  sendOrdinary: sendOrdinaryStarts,
  async run(target) {
    const { sourceId } = await target.saveSource('Stored list', { items: [] })
    await target.storeExample(sourceId, LONG_LIST)
    const ended = await startAndWait(target, 'Stored list', 50)
    return { summary: `example with a list of 20,000 objects, stored earlier; 50 starts: ${ended}`, violations: [] }
  },
}

export const largestExample: Attack = {
  name: 'largest-example',
  sendOrdinary: sendOrdinaryStarts,
  async run(target) {
    const { expect, violations } = openExpectations()
    const { status } = await target.saveSource('Largest', LARGEST)
    expect(status === 201, `The largest example that is allowed was answered ${status}.`)
    const ended = await startAndWait(target, 'Largest', 50)
    return { summary: `example of ${JSON.stringify(LARGEST).length} bytes; 50 starts: ${ended}`, violations }
  },
}

export const nullFields: Attack = {
  name: 'null-fields',
  sendOrdinary: sendOrdinaryStarts,
  async run(target) {
    const { expect, violations } = openExpectations()
    const { status } = await target.saveSource('Nulls', nullFieldsOf(EXAMPLE_MAX_FIELDS - 1))
    expect(status === 201, `${EXAMPLE_MAX_FIELDS} fields were answered ${status}.`)
    const ended = await startAndWait(target, 'Nulls', 50)
    return { summary: `${EXAMPLE_MAX_FIELDS} fields of null, 50 starts of 10,000 characters: ${ended}`, violations }
  },
}

/**
 * A payload of 120 MB. Once, writing it to the journal took over 5 s, counted as a database that does not answer, and was
 * repeated for ever, while every other run waited.
 */
export const storedNullFields: Attack = {
  name: 'stored-null-fields',
  ends: ['runner'],
  async run(target) {
    const { sourceId } = await target.saveSource('Stored nulls', { text: 'x' })
    await target.storeExample(sourceId, nullFieldsOf(12_000))
    const ended = await startAndWait(target, 'Stored nulls', 3)
    return { summary: `12,000 fields of null, 3 starts of 10,000 characters: ${ended}; then SIGTERM`, violations: [] }
  },
  async checkAfterwards(target) {
    const { expect, violations } = openExpectations()
    const { code, signal } = await target.services.runner.process.stop(40_000)
    expect(code === 0, `The runner ended with ${signal ?? code} after SIGTERM.`)
    return violations
  },
}

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

async function startAndWait(target: AttackTarget, sourceName: string, count: number): Promise<string> {
  const workflowId = await target.createWorkflow(`Send it to "${sourceName}".`)
  const ids = await target.start(workflowId, Array<string>(count).fill(CONTEXT))
  const runs = await target.waitForRuns(ids)
  const waiting = ids.length - runs.length
  const ends = runs.map(({ status, error }) => error?.split(':')[0] ?? status)
  return tally([...ends, ...Array<string>(waiting).fill('still running')])
}
