import { describe, expect, test } from '@jest/globals'
import { Crash, createInMemoryRun, executeWithCrashes, webhookSource } from '../../../test/support/in-memory-run.ts'
import type { DeliveryResult } from '../agent.ts'
import { createBuiltinAgent } from './builtin-agent.ts'

const orders = webhookSource('Order intake', { order_id: 'A-1', total: 9.5 })
const audit = webhookSource('Audit log', { message: 'x' })
const unnamed = webhookSource('Billing', { message: 'x' })
const description = 'Forward the order to Order intake, then send it to the Audit log.'
const context = 'order_id: B-7\ntotal: 42.50'
const agent = createBuiltinAgent()

describe('the built-in agent', () => {
  test('sends one payload to every webhook source that the description names, in order', async () => {
    const run = createInMemoryRun({ description, context, sources: [audit, unnamed, orders] })
    await run.execute(agent)
    expect(run.sent.map(({ sourceId, payload }) => [sourceId, payload])).toEqual([
      [orders.id, { order_id: 'B-7', total: 42.5 }],
      [audit.id, { message: context }],
    ])
  })

  test('records in the journal where each value came from, and the result of each delivery', async () => {
    const run = createInMemoryRun({ description, context, sources: [orders], inputMessage: 'New order' })
    await run.execute(agent)
    expect(run.steps.map(({ kind, data }) => ({ kind, data }))).toEqual([
      { kind: 'message', data: { agent: 'builtin', text: `New order\n\n${context}` } },
      { kind: 'note', data: { code: 'payload_filled', text: 'Order intake: filled by name: order_id, total' } },
      {
        kind: 'tool_call',
        data: {
          call_id: 'builtin-1',
          tool: 'builtin',
          delivery: {
            id: run.sent[0]?.deliveryId,
            source_id: orders.id,
            source_name: 'Order intake',
            payload: { order_id: 'B-7', total: 42.5 },
          },
        },
      },
      {
        kind: 'tool_result',
        data: {
          call_id: 'builtin-1',
          tool: 'builtin',
          ok: true,
          text: 'Accepted: the endpoint answered 204.',
          delivery: {
            id: run.sent[0]?.deliveryId,
            source_id: orders.id,
            source_name: 'Order intake',
            outcome: 'accepted',
            status: 204,
            answer: null,
            reason: null,
          },
        },
      },
    ])
  })

  test.each([
    [
      'a value does not fit',
      'order_id: B-7\ntotal: soon',
      'Nothing was sent to Order intake: values that do not fit: total ("soon" is not a number)',
    ],
    [
      'the context names nothing',
      'Please call me back',
      'Nothing was sent to Order intake: the context names no value for: order_id, total. The built-in agent reads names and values (JSON, "name: value" lines, tables); to understand prose, set a model',
    ],
  ])('sends nothing at all when %s, and says so in each attempt', async (_what, text, message) => {
    const run = createInMemoryRun({ description, context: text, sources: [orders, audit] })
    const failure = { name: 'RunError', code: 'payload_incomplete', message }
    await expect(run.execute(agent)).rejects.toMatchObject(failure)
    expect(run.steps.map(({ kind, data }) => [kind, 'code' in data ? data.code : ''])).toEqual([
      ['message', ''],
      ['note', 'payload_incomplete'],
    ])
    await expect(run.execute(agent)).rejects.toMatchObject(failure)
    expect(run.sent).toEqual([])
  })

  test.each([
    ['the description', { description: 'Send it to Order intake only if it is paid.' }],
    ['the input message', { description, inputMessage: 'Never send orders of less than 5 EUR.' }],
  ])('sends nothing when %s holds a condition', async (_what, options) => {
    const run = createInMemoryRun({ context, sources: [orders, audit], ...options })
    const failure = { code: 'rules_needed', message: expect.stringMatching(/rules\.yaml.*The sentence is: "/) }
    await expect(run.execute(agent)).rejects.toMatchObject(failure)
    await expect(run.execute(agent)).rejects.toMatchObject(failure)
    expect(run.sent).toEqual([])
  })

  test.each([
    ['names no source', [unnamed], /names none of the organization's webhook sources/],
    ['has no source to name', [], /has no webhook source/],
  ])('succeeds with a note when the description %s', async (_what, sources, text) => {
    const run = createInMemoryRun({ description, context, sources })
    await run.execute(agent)
    expect(run.sent).toEqual([])
    expect(run.steps.at(-1)).toMatchObject({
      kind: 'note',
      data: { code: 'no_source_named', text: expect.stringMatching(text) },
    })
  })

  const outcomes: [Partial<DeliveryResult>, string, string][] = [
    [
      { outcome: 'rejected', status: 500 },
      'delivery_rejected',
      'Order intake did not accept the payload: it answered 500',
    ],
    [{ outcome: 'timed_out', status: null }, 'delivery_timed_out', 'Order intake did not answer within 30 seconds'],
    [
      { outcome: 'unreachable', status: null, reason: 'The connection was refused.' },
      'delivery_unreachable',
      'Order intake could not be reached. The connection was refused.',
    ],
    [
      { outcome: 'refused', status: null, reason: 'The address is not public.' },
      'delivery_refused',
      'Nothing was sent to Order intake. The address is not public.',
    ],
    [
      { outcome: 'invalid', status: null, reason: 'total: must be a number.' },
      'delivery_invalid',
      'Nothing was sent to Order intake. total: must be a number.',
    ],
    [
      { outcome: 'unknown', status: null },
      'delivery_unknown',
      'It is unknown whether Order intake received the payload: the request was interrupted',
    ],
  ]
  test.each(outcomes)(
    'fails the run when a payload is not accepted, after it has sent the others: %j',
    async (result, code, message) => {
      const endpoint = ({ sourceId }: { sourceId: string }) => (sourceId === orders.id ? result : {})
      const run = createInMemoryRun({ description, context, sources: [orders, audit], endpoint })
      await expect(run.execute(agent)).rejects.toMatchObject({ name: 'RunError', code, message })
      expect(run.sent.map(({ sourceId }) => sourceId)).toEqual([orders.id, audit.id])
    },
  )

  test.each(['before', 'after'] as const)(
    'sends each payload once although it crashes right %s every step',
    async (when) => {
      const run = createInMemoryRun({ description, context, sources: [orders, audit] })
      await executeWithCrashes(run, agent, when)
      expect(run.sent.map(({ sourceId }) => sourceId)).toEqual([orders.id, audit.id])
      expect(run.steps.filter(({ kind }) => kind === 'tool_call')).toHaveLength(2)
      expect(run.steps.filter(({ kind }) => kind === 'tool_result')).toHaveLength(2)
    },
  )

  test('follows the plan in the journal when sources change between two attempts', async () => {
    const sources = [orders]
    const run = createInMemoryRun({ description, context, sources })
    run.crashAt({ operation: 1, when: 'after' })
    await expect(run.execute(agent)).rejects.toBeInstanceOf(Crash)
    sources[0] = audit
    run.crashAt(null)
    await run.execute(agent)
    expect(run.sent.map(({ sourceId }) => sourceId)).toEqual([orders.id])
  })

  test('fails a second attempt from the journal without sending anything', async () => {
    const run = createInMemoryRun({
      description,
      context,
      sources: [orders],
      endpoint: () => ({ outcome: 'rejected', status: 500 }),
    })
    await expect(run.execute(agent)).rejects.toMatchObject({ code: 'delivery_rejected' })
    await expect(run.execute(agent)).rejects.toMatchObject({ code: 'delivery_rejected' })
    expect(run.sent).toHaveLength(1)
  })

  test('ends at the next step boundary when the runner stops', async () => {
    const stopAfterFirst = { endpoint: () => ({}) }
    const run = createInMemoryRun({
      description,
      context,
      sources: [orders, audit],
      endpoint: () => stopAfterFirst.endpoint(),
    })
    stopAfterFirst.endpoint = () => {
      run.interrupt()
      return {}
    }
    await expect(run.execute(agent)).rejects.toMatchObject({ name: 'RunInterruptedError' })
    expect(run.sent).toHaveLength(1)
    expect(run.steps.at(-1)?.kind).toBe('tool_result')
  })

  test('sends nothing at all when the stored example of a source exceeds a limit', async () => {
    const items = Array.from({ length: 20_000 }, (_, index) => ({ [`n${index % 7}`]: index }))
    const stored = webhookSource('Stored', { items })
    const run = createInMemoryRun({ description: 'Stored, Audit log', context: 'x', sources: [stored, audit] })
    await expect(run.execute(agent)).rejects.toMatchObject({
      code: 'delivery_invalid',
      message: expect.stringMatching(/^Nothing was sent to Stored: its example request body .* 100 /),
    })
    expect(run.sent).toEqual([])
  })

  describe('with a payload that would be too large', () => {
    const fields = Array.from({ length: 400 }, (_, index) => [`field ${index} text`, 'x'])
    const large = webhookSource('Large', Object.fromEntries(fields) as Record<string, unknown>)
    const longContext = 'y'.repeat(10_000)

    test('sends nothing at all, fails the run with delivery_invalid, and journals nothing of that size', async () => {
      const run = createInMemoryRun({ description: 'Large, Audit log', context: longContext, sources: [large, audit] })
      const failure = {
        name: 'RunError',
        code: 'delivery_invalid',
        message: 'Nothing was sent to Large: the payload would be larger than 256 KiB',
      }
      await expect(run.execute(agent)).rejects.toMatchObject(failure)
      expect(JSON.stringify(run.steps).length).toBeLessThan(30_000)
      await expect(run.execute(agent)).rejects.toMatchObject(failure)
      expect(run.sent).toEqual([])
    })

    test('sends at most 4 MiB in one run', async () => {
      const example = Object.fromEntries(fields.slice(0, 25)) as Record<string, unknown>
      const sources = Array.from({ length: 30 }, (_, index) => webhookSource(`Source ${index}`, example))
      const names = sources.map(({ name }) => name).join(', ')
      const run = createInMemoryRun({ description: names, context: longContext, sources })
      await expect(run.execute(agent)).rejects.toMatchObject({
        code: 'delivery_invalid',
        message: 'Nothing was sent to Source 16: the payloads of one run would be larger than 4 MiB',
      })
      expect(run.sent).toEqual([])
    })

    test('keeps the note about many fields with long names short', async () => {
      const longNames = Object.fromEntries(
        fields.map(([name = ''], index) => [`${index}${'n'.repeat(100)} ${name}`, 1]),
      )
      const source = webhookSource('Large', { parent: longNames })
      const run = createInMemoryRun({ description: 'Large', context: 'nothing', sources: [source] })
      await expect(run.execute(agent)).rejects.toMatchObject({ code: 'payload_incomplete' })
      const note = run.steps.find(({ kind }) => kind === 'note')
      expect(note?.data).toMatchObject({ text: expect.stringMatching(/ and 380 more\. /) })
      expect(JSON.stringify(note?.data).length).toBeLessThan(5_000)
    })
  })
})
