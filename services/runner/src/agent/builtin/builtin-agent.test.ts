import { describe, expect, test } from '@jest/globals'
import {
  createInMemoryRun,
  executeWithCrashes,
  type InMemoryRunOptions,
  webhookSource,
} from '../../../test/support/in-memory-run.ts'
import { builtinAgent as agent } from './builtin-agent.ts'

const orders = webhookSource('Order intake', { order_id: 'A-1', total: 9.5 })
const audit = webhookSource('Audit log', { total: 'x', note: null })
const unnamed = webhookSource('Billing', { message: 'x' })
const description = 'Forward the order to Order intake, then to Audit log.'
const NEVER = 'Never send orders of less than 5 EUR.'
const likeRules = { id: 'f', name: 'Rules.yml', path: [], content: 'deliveries: []' }
const toOrders = 'Forward the order to Order intake.'
const context = 'order_id: B-7\ntotal: 42.50'

const startRun = (options: InMemoryRunOptions = {}) =>
  createInMemoryRun({ description, context, sources: [orders, audit], ...options })

describe('the built-in agent', () => {
  test('records in the journal where each value came from, and the result of each delivery', async () => {
    const run = startRun({ description: toOrders, sources: [orders], inputMessage: 'New order' })
    await run.execute(agent)
    const target = { id: run.sent[0]?.deliveryId, source_id: orders.id, source_name: 'Order intake' }
    const call = { call_id: 'builtin-1', tool: 'builtin' }
    const outcome = { outcome: 'accepted', status: 204, answer: null, reason: null }
    expect(run.steps.map(({ kind, data }) => [kind, data])).toEqual([
      ['message', { agent: 'builtin', text: `New order\n\n${context}` }],
      ['note', { code: 'payload_filled', text: 'Order intake: filled by name: order_id, total' }],
      ['tool_call', { ...call, delivery: { ...target, payload: { order_id: 'B-7', total: 42.5 } } }],
      [
        'tool_result',
        { ...call, ok: true, text: 'Accepted: the endpoint answered 204.', delivery: { ...target, ...outcome } },
      ],
    ])
  })

  test.each([
    [
      'a value does not fit',
      'order_id: B-7\ntotal: soon',
      'Values that cannot be used: total of Order intake ("soon" is no number such as 12 or -3.50)',
    ],
    [
      'a field has no value',
      'Order ID: B-7\nTtal: 5',
      'No value for: total of Order intake, closest name "Ttal"; total of Audit log, closest name "Ttal". Names that no field took: "Ttal"',
    ],
    ['no field takes a line', 'Order ID: B-7\nTotal: 5\nErratum: 6', 'Names that no field took: "Erratum"'],
  ])('sends nothing at all when %s, and says so in each attempt', async (_what, text, why) => {
    const run = startRun({ context: text })
    const message = `Nothing was sent to Order intake, Audit log. ${why}`
    const failure = { name: 'RunError', code: 'payload_incomplete', message }
    await expect(run.execute(agent)).rejects.toMatchObject(failure)
    expect(run.steps.map(({ kind, data }) => [kind, 'code' in data ? data.code : ''])).toEqual([
      ['message', ''],
      ['note', 'payload_incomplete'],
    ])
    await expect(run.execute(agent)).rejects.toMatchObject(failure)
    expect(run.sent).toEqual([])
  })

  test('records what a person needs to write rules', async () => {
    const run = startRun({ context: 'order: B-7\ntotal: soon' })
    await expect(run.execute(agent)).rejects.toMatchObject({ code: 'payload_incomplete' })
    expect(run.steps.at(-1)?.data).toMatchObject({
      details: {
        sources: ['Order intake', 'Audit log'],
        missing: [{ source: 'Order intake', field: 'order_id', closest: 'order' }],
        unusable: [{ source: 'Order intake', field: 'total', reason: '"soon" is no number such as 12 or -3.50' }],
        unused: ['order'],
      },
    })
  })

  test('finds the closest name among all of a large context', async () => {
    const others = Object.fromEntries(Array.from({ length: 120 }, (_, index) => [String(index), 1]))
    const run = startRun({ context: JSON.stringify({ ...others, total: 5, 'order no': 'B-7' }) })
    await expect(run.execute(agent)).rejects.toMatchObject({ code: 'payload_incomplete' })
    expect(run.steps.at(-1)?.data).toMatchObject({ details: { missing: [{ field: 'order_id', closest: 'order no' }] } })
  })

  test.each<[string, InMemoryRunOptions, code: string, message: RegExp]>([
    ['the input message holds a condition', { inputMessage: NEVER }, 'rules_needed', /rules\.yaml.*The sentence is: "/],
    [
      'the description names no source',
      { sources: [unnamed] },
      'no_destination',
      /names none of the organization's webhook sources/,
    ],
    ['the description has no source to name', { sources: [] }, 'no_destination', /has no webhook source/],
    ['a file looks like rules and is not followed', { files: [likeRules] }, 'rule_failed', /not "Rules\.yml"/],
  ])('sends nothing when %s', async (_what, options, code, message) => {
    const run = startRun(options)
    const failure = { code, message: expect.stringMatching(message) }
    await expect(run.execute(agent)).rejects.toMatchObject(failure)
    await expect(run.execute(agent)).rejects.toMatchObject(failure)
    expect(run.sent).toEqual([])
  })

  test.each([
    ['rejected', null, 'Order intake did not accept the payload: it answered 500'],
    ['timed_out', null, 'Order intake did not answer within 30 seconds'],
    [
      'unreachable',
      'The connection was reset.',
      'Order intake could not be reached, or gave no valid answer. The connection was reset.',
    ],
    ['refused', 'It is not public.', 'Nothing was sent to Order intake. It is not public.'],
    ['invalid', 'total: must be a number.', 'Nothing was sent to Order intake. total: must be a number.'],
    ['unknown', null, 'It is unknown whether Order intake received the payload: the request was interrupted'],
  ] as const)('fails the run after %s, after it has sent the others', async (outcome, reason, message) => {
    const result = { outcome, reason, status: outcome === 'rejected' ? 500 : null }
    const endpoint = ({ sourceId }: { sourceId: string }) => (sourceId === orders.id ? result : {})
    const run = startRun({ endpoint })
    const failure = { code: `delivery_${outcome}`, message }
    await expect(run.execute(agent)).rejects.toMatchObject(failure)
    // A second attempt fails from the journal, without sending anything.
    await expect(run.execute(agent)).rejects.toMatchObject(failure)
    expect(run.sent.map(({ sourceId }) => sourceId)).toEqual([orders.id, audit.id])
  })

  test.each(['before', 'after'] as const)(
    'sends each payload once although it crashes right %s every step',
    async (when) => {
      const run = startRun()
      await executeWithCrashes(run, agent, when)
      expect(run.sent.map(({ sourceId }) => sourceId)).toEqual([orders.id, audit.id])
      expect([run.dataOf('tool_call').length, run.dataOf('tool_result').length]).toEqual([2, 2])
    },
  )

  test('follows the plan in the journal when sources change between two attempts', async () => {
    const sources = [orders]
    const run = startRun({ description: toOrders, sources })
    expect(await run.crashAt(agent, 1)).toBe(true)
    sources[0] = audit
    await run.execute(agent)
    expect(run.sent.map(({ sourceId }) => sourceId)).toEqual([orders.id])
  })

  test('ends at the next step boundary when the runner stops', async () => {
    const run = startRun({
      endpoint() {
        run.interrupt()
        return {}
      },
    })
    await expect(run.execute(agent)).rejects.toMatchObject({ name: 'RunInterruptedError' })
    expect(run.sent).toHaveLength(1)
    expect(run.steps.at(-1)?.kind).toBe('tool_result')
  })

  describe('with a payload that would be too large', () => {
    const names = Array.from({ length: 400 }, (_, index) => `field ${index}`)

    test.each([
      ['values', names, '['.concat('{},'.repeat(2_000), '{}]')],
      ['KiB', ['n'.repeat(1_000)], '['.concat('{},'.repeat(2_000), '{}]')],
    ])('of too many %s, sends nothing, and journals nothing of that size', async (_what, fields, items) => {
      const item = Object.fromEntries(fields.map((name) => [name, null]))
      const large = webhookSource('Large', { items: [item] })
      const run = createInMemoryRun({
        description: 'Send it to Large and Audit log.',
        context: `{"items": ${items}, "total": "5"}`,
        sources: [large, audit],
      })
      const message = 'Nothing was sent: a payload would have more than 20,000 values or 256 KiB'
      await expect(run.execute(agent)).rejects.toMatchObject({ name: 'RunError', code: 'delivery_invalid', message })
      expect(JSON.stringify(run.steps).length).toBeLessThan(30_000)
      expect(run.sent).toEqual([])
    })

    test('sends at most 4 MiB in one run', async () => {
      const example = Object.fromEntries(names.map((name) => [name.repeat(12), null]))
      const sources = Array.from({ length: 100 }, (_, index) => webhookSource(`Source ${index}`, example))
      const run = createInMemoryRun({
        description: `Send it to ${sources.map(({ name }) => name).join(', ')}.`,
        context: '{}',
        sources,
      })
      await expect(run.execute(agent)).rejects.toMatchObject({
        code: 'delivery_invalid',
        message: expect.stringMatching(
          /^Nothing was sent to Source \d+: the payloads of one run would be larger than 4 MiB$/,
        ),
      })
      expect(run.sent).toEqual([])
    })

    test('keeps the note about many fields with long names short', async () => {
      const parent = Object.fromEntries(names.map((name) => [name + 'n'.repeat(100), 1]))
      const run = createInMemoryRun({
        description: 'Send it to Large.',
        context: 'nothing: 1',
        sources: [webhookSource('Large', { parent })],
      })
      await expect(run.execute(agent)).rejects.toMatchObject({ code: 'payload_incomplete' })
      expect(JSON.stringify(run.steps.at(-1)?.data).length).toBeLessThan(15_000)
    })
  })
})
