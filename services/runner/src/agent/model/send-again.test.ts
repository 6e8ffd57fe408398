import { describe, expect, test } from '@jest/globals'
import type { ModelRequest, ModelSpeech, ModelTurn } from '@workflow-service/testkit'
import { createInMemoryRun, executeWithCrashes, webhookSource } from '../../../test/support/in-memory-run.ts'
import { callTool, end, useModelAgent } from '../../../test/support/model-agent.ts'
import { isSamePayload } from '../deliveries.ts'

const sources = [webhookSource('Order intake', { order_id: 'A-1', total: 9.5 })]
const reason = 'Repeated orders are ignored.'

const send = callTool('send_to_order_intake', { order_id: 'B-7', total: 42.5 })
const sendReordered = callTool('send_to_order_intake', '{"total": 42.50, "order_id": "B-7"}')
const sendAgain = (request: ModelRequest): ModelSpeech =>
  callTool('send_again', { delivery_id: listIds(request)?.[0], reason })
const sendAgainTwice = (request: ModelRequest): ModelSpeech => {
  const { toolCalls = [] } = sendAgain(request)
  return { toolCalls: [...toolCalls, ...toolCalls] }
}
const done = end()
const giveUp = end('failed', 'It may have arrived.')

/** The deliveries that the request's tool can send again; undefined if it has no such tool. */
function listIds({ conversation }: ModelRequest): string[] | undefined {
  const tool = conversation.tools.find(({ name }) => name === 'send_again')
  const { delivery_id: id } = (tool?.schema['properties'] ?? {}) as Record<string, { enum: string[] }>
  return id?.enum
}

/** An endpoint that gives these outcomes, then accepts. */
function failing(...outcomes: ('timed_out' | 'unknown' | 'unreachable')[]) {
  const left = [...outcomes]
  return () => {
    const outcome = left.shift()
    return outcome ? { outcome, status: null } : {}
  }
}

const model = useModelAgent()

describe('a payload that may have arrived', () => {
  test.each(['timed_out', 'unknown', 'unreachable'] as const)(
    'is not sent by another ordinary call after %s, also not after a crash',
    async (outcome) => {
      const agent = await model.start({ turns: [send, sendReordered, giveUp] })
      const run = createInMemoryRun({ sources, endpoint: failing(outcome) })
      // Right after the second answer was recorded.
      expect(await run.crashAt(agent, 6)).toBe(true)
      expect(run.steps.at(-1)?.kind).toBe('model_answer')
      await expect(run.execute(agent)).rejects.toMatchObject({ code: `delivery_${outcome}` })
      expect(run.sent).toHaveLength(1)
      const refused = run.steps.filter(({ data }) => 'error' in data && data.error === 'may_have_arrived')
      expect(refused).toMatchObject([
        {
          data: { text: expect.stringContaining(`with the delivery ${run.sent[0]?.deliveryId}. To send it although`) },
        },
      ])
    },
  )

  test('is sent again when the model says so and why: the journal and the log have the reason', async () => {
    const agent = await model.start({ turns: [send, sendAgain, done] })
    const run = createInMemoryRun({ sources, endpoint: failing('timed_out') })
    await run.execute(agent)
    const [first, second] = run.sent
    expect(second?.payload).toEqual(first?.payload)
    expect(second?.deliveryId).not.toBe(first?.deliveryId)
    const call = run.steps.findLast((step) => step.kind === 'tool_call' && step.data.delivery)
    expect(call).toMatchObject({ data: { delivery: { send_again: { delivery_id: first?.deliveryId, reason } } } })
    const ids = { delivery_id: second?.deliveryId, earlier_delivery_id: first?.deliveryId }
    expect(model.lines).toMatchObject([{ msg: 'delivery.sent_again', ...ids, reason }])
    expect(model.server.requests.map(listIds)).toEqual([undefined, [first?.deliveryId], undefined])
  })

  test.each<[string, ModelTurn]>([
    ['of a delivery that there is not', callTool('send_again', { delivery_id: 'another', reason })],
    ['without a reason', (request) => callTool('send_again', { delivery_id: listIds(request)?.[0], reason: ' ' })],
  ])('is not sent again by a call %s', async (_what, turn) => {
    const agent = await model.start({ turns: [send, turn, giveUp] })
    const run = createInMemoryRun({ sources, endpoint: failing('timed_out') })
    await expect(run.execute(agent)).rejects.toMatchObject({ code: 'delivery_timed_out' })
    expect(run.sent).toHaveLength(1)
    expect(JSON.stringify(model.server.requests[2]?.body)).toContain('Nothing was sent: delivery_id must be one of')
  })

  test('and was accepted since is never sent again, also if the model asks for it', async () => {
    const agent = await model.start({ turns: [send, sendAgainTwice, send, done] })
    const run = createInMemoryRun({ sources, endpoint: failing('timed_out') })
    await run.execute(agent)
    expect(run.sent).toHaveLength(2)
    expect(JSON.stringify(model.server.requests[3]?.body)).toContain(
      'Order intake has accepted the same payload before',
    )
  })

  test.each(['before', 'after'] as const)(
    'is sent once by each of these calls, although the runner dies right %s each step',
    async (when) => {
      const answers: ModelTurn[] = [send, sendAgain, sendAgain, done]
      const otherwise: ModelTurn = (request, index) => {
        const turn = answers[request.conversation.messages.filter(({ role }) => role === 'assistant').length]!
        return typeof turn === 'function' ? turn(request, index) : turn
      }
      const agent = await model.start({ otherwise })
      const run = createInMemoryRun({ sources, endpoint: failing('unknown', 'timed_out') })
      await executeWithCrashes(run, agent, when)
      expect(run.sent).toHaveLength(3)
    },
  )
})

test('a payload is read once, with however many others it is compared', () => {
  let reads = 0
  const payload = new Proxy<Record<string, unknown>>(
    { total: 0, lines: [{ b: 1, a: 'ö' }] },
    {
      ownKeys: (target) => {
        reads += 1
        return Reflect.ownKeys(target)
      },
    },
  )
  const others = [{ lines: [{ a: 'ö', b: 1 }], total: -0 }, { total: 0 }, { total: 0, lines: [{ b: 1, a: 'o' }] }]
  expect(others.map((other) => isSamePayload(payload, other))).toEqual([true, false, false])
  expect(reads).toBe(1)
})
