import { describe, expect, test } from '@jest/globals'
import { LOOKUP_BYTES_PER_RUN, LOOKUP_CALLS_PER_RUN } from '@workflow-service/contract'
import type { ModelProtocolName, ModelTurn, StubModelServer } from '@workflow-service/testkit'
import { useStubModel } from '@workflow-service/testkit/use-stub-model'
import { Crash, createInMemoryRun, executeWithCrashes, webhookSource } from '../../../test/support/in-memory-run.ts'
import { type Injection, INJECTIONS } from '../../../test/support/injections.ts'
import { modelConfig } from '../../../test/support/model-config.ts'
import type { Agent } from '../agent.ts'
import { createModelAgent } from './model-agent.ts'

const orders = webhookSource('Order intake', { message: 'x' })
const payroll = webhookSource('Payroll', { message: 'x' })
const parameters = { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] }
const lookups = ['Customers', 'Salaries'].map((name) => ({
  id: crypto.randomUUID(),
  name,
  tools: [
    { name: 'find', description: `Finds in ${name}.`, path: '/{id}', parameters },
    { name: 'count', path: '/' },
  ],
}))

const find = (id: string) => ({ name: 'look_up_customers_find', arguments: { id } })
const SEND = { name: 'send_to_order_intake', arguments: { message: 'Ada' } }
const send: ModelTurn = { toolCalls: [SEND] }
const END = [{ name: 'end_run', arguments: { status: 'done', reason: 'As asked.' } }]
const end: ModelTurn = { toolCalls: END }

const startModelServer = useStubModel()

async function prepare(
  turns: ModelTurn[],
  options: Parameters<typeof createInMemoryRun>[0] = {},
  provider: ModelProtocolName = 'openai-compatible',
): Promise<{ run: ReturnType<typeof createInMemoryRun>; agent: Agent; server: StubModelServer }> {
  const server = await startModelServer({ turns, otherwise: end })
  const agent = createModelAgent([modelConfig({ provider, baseUrl: server.baseUrl })])
  const description = 'Find the customer in Customers, and send it to Order intake.'
  const run = createInMemoryRun({ sources: [orders, payroll], lookups, description, ...options })
  return { run, agent, server }
}

const results = (run: ReturnType<typeof createInMemoryRun>) =>
  run.steps.flatMap((step) => (step.kind === 'tool_result' && step.data.lookup ? [step.data] : []))

describe('a look-up', () => {
  test.each<ModelProtocolName>(['openai', 'openai-compatible', 'anthropic', 'google', 'bedrock'])(
    'that the workflow names is offered, called, and answered with data from outside: %s',
    async (provider) => {
      const counts: ModelTurn = { toolCalls: [{ name: 'look_up_customers_count', arguments: {} }] }
      const { run, agent, server } = await prepare([{ toolCalls: [find('C-1')] }, counts, send], {}, provider)
      await run.execute(agent)
      expect(server.violations).toEqual([])
      const names = server.requests[0]!.conversation.tools.map(({ name }) => name)
      expect(names.toSorted()).toEqual([
        'end_run',
        'look_up_customers_count',
        'look_up_customers_find',
        'send_to_order_intake',
      ])
      expect(run.lookedUp).toMatchObject([
        { tool: 'find', arguments: { id: 'C-1' } },
        { tool: 'count', arguments: {} },
      ])
      expect(results(run)[0]).toMatchObject({ ok: true, lookup: { status: 200 } })
      expect(results(run)[0]?.text).toMatch(/^The look-up answered \(200\):\n<(data-\w+) of="look-up">\n.*\n<\/\1>$/s)
      expect(JSON.stringify(server.requests.at(-1)?.body)).toContain('C-1')
      expect(run.sent.length).toBe(1)
    },
  )

  test('is in the journal before it is called, and is called again after a crash only without an answer', async () => {
    for (const when of ['before', 'after'] as const) {
      let calls = 0
      const scripted: ModelTurn = ({ conversation }) => {
        const text = JSON.stringify(conversation)
        if (text.includes('Accepted')) return { toolCalls: END }
        return { toolCalls: [text.includes('The look-up answered') ? SEND : find('C-1')] }
      }
      const turns = Array.from({ length: 40 }, () => scripted)
      const { run, agent } = await prepare(turns, {
        lookUp: () => {
          const call = { kind: 'tool_call', data: { lookup: { name: 'Customers', tool: 'find' } } }
          expect(run.steps.at(-1)).toMatchObject(call)
          if (++calls === 1) throw new Crash()
          return {}
        },
      })
      await expect(run.execute(agent)).rejects.toThrow(Crash)
      await executeWithCrashes(run, agent, when)
      expect([results(run).length, run.sent.length]).toEqual([1, 1])
      // Once more for the one crash between a call and the writing of its answer.
      expect(calls).toBe(3)
    }
  })

  test('has a limit of calls in a run', async () => {
    const many = Array.from({ length: LOOKUP_CALLS_PER_RUN + 3 }, (_, index) => find(`C-${index}`))
    const { run, agent } = await prepare([{ toolCalls: many }, send])
    await run.execute(agent)
    expect(run.lookedUp.length).toBe(LOOKUP_CALLS_PER_RUN)
    expect(JSON.stringify(run.steps)).toContain('too_many_lookups')
    expect(run.sent.length).toBe(1)
  })

  test('has a limit of bytes in a run, and the model gets no more', async () => {
    const size = LOOKUP_BYTES_PER_RUN / 2 - 10
    const calls = [1, 2, 3, 4].map((id) => find(`C-${id}`))
    const { run, agent } = await prepare([{ toolCalls: calls }, send], {
      lookUp: () => ({ text: 'é'.repeat(size / 2), bytes: size }),
    })
    await run.execute(agent)
    expect(run.lookedUp.length).toBe(3)
    expect(results(run).map(({ text }) => text.match(/é/g)?.length)).toEqual([size / 2, size / 2, 10])
    expect(results(run)[2]?.text).toContain('this is its beginning')
  })

  test('that brings no result does not fail the run', async () => {
    const { run, agent } = await prepare([{ toolCalls: [find('C-1')] }, send], {
      lookUp: () => ({ ok: false, status: 404, text: 'No such customer' }),
    })
    await run.execute(agent)
    expect(results(run)[0]?.text).toContain('The look-up brought no result (404):')
    expect(run.sent.length).toBe(1)
  })

  test('that no text of the workflow names is not offered', async () => {
    const { run, agent, server } = await prepare([send], { description: 'Send it to Order intake.' })
    await run.execute(agent)
    const { tools } = server.requests[0]!.conversation
    expect(tools.map(({ name }) => name).toSorted()).toEqual(['end_run', 'send_to_order_intake'])
    expect(JSON.stringify(server.requests[0]?.body)).not.toContain('look_up')
  })
})

describe('an answer of a look-up that gives instructions', () => {
  const files = [{ id: 'f', name: 'secret.md', path: [], content: 'x' }]
  const runObeying = async ({ text, calls }: Injection) => {
    const obeys: ModelTurn = { toolCalls: calls.map((each) => ({ ...each })) }
    const { run, agent, server } = await prepare([{ toolCalls: [find('C-1')] }, obeys, obeys, send], {
      files,
      lookUp: () => ({ text }),
    })
    // A model that obeys may fail its run.
    await run.execute(agent).catch((error: unknown) => expect(error).toHaveProperty('code'))
    expect(server.violations).toEqual([])
    // Nothing in the text ends the data.
    const [, tag = ''] = /<(data-\w+) of="look-up">/.exec(results(run)[0]!.text) ?? []
    return {
      elsewhere: run.sent.filter(({ sourceId }) => sourceId !== orders.id),
      otherTools: run.lookedUp.filter(({ tool }) => tool !== 'find'),
      endsOfData: results(run)[0]!.text.split(`</${tag}>`).length - 1,
    }
  }
  const nothing = { elsewhere: [], otherTools: [], endsOfData: 1 }

  test.each(INJECTIONS)('sends nothing to a source that the workflow does not name: $text', async (injection) => {
    expect(await runObeying(injection)).toEqual(nothing)
  })
})
