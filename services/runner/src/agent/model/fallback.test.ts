import { randomUUID } from 'node:crypto'
import { describe, expect, test } from '@jest/globals'
import { createCapturedLogger, type ModelTurn } from '@workflow-service/testkit'
import { useStubModel } from '@workflow-service/testkit/use-stub-model'
import {
  createInMemoryRun,
  executeWithCrashes,
  type InMemoryRun,
  webhookSource,
} from '../../../test/support/in-memory-run.ts'
import { callTool, createClock, end, PROVIDERS } from '../../../test/support/model-agent.ts'
import { modelConfig } from '../../../test/support/model-config.ts'
import type { ModelProvider } from '../agent-settings.ts'
import { createModelAgent } from './model-agent.ts'
import type { ModelGate } from './model-gate.ts'

const send = callTool('send_to_audit_log', { message: 'hello' })
const done = end()
const limitedTurn: ModelTurn = { failure: 'status', status: 429, retryAfterSeconds: 60 }
const source = webhookSource('Audit log', { message: 'x' })

const startModelServer = useStubModel()

/** A model with a fallback that ends the run. */
async function createPair(
  provider: ModelProvider,
  turns: ModelTurn[],
  { otherwise, fallback = provider }: { otherwise: ModelTurn; fallback?: ModelProvider },
) {
  const first = await startModelServer({ turns, otherwise })
  const second = await startModelServer({ otherwise: done })
  const clock = createClock(0)
  const { logger, lines } = createCapturedLogger()
  const aws = { region: 'eu-central-1' }
  const main = { provider, aws, baseUrl: first.baseUrl, fallback: 'spare', isStreaming: true }
  const configs = [
    modelConfig({ ...main, name: 'main', modelName: 'big' }),
    modelConfig({ name: 'spare', provider: fallback, aws, modelName: 'small', baseUrl: second.baseUrl }),
  ]
  return { agent: createModelAgent(configs, { logger }, clock), first, second, lines, clock }
}

const startRun = (): InMemoryRun => createInMemoryRun({ sources: [source], context: 'hello' })

/** Which model gave each answer, and the notes. */
function tell({ steps }: InMemoryRun): string[] {
  return steps.flatMap((step) => {
    if (step.kind === 'model_answer') return [`${step.data.model_name}: ${step.data.model}`]
    return step.kind === 'note' && step.data.code === 'model_fallback' ? [step.data.text] : []
  })
}

describe('a model whose API is unavailable', () => {
  test.each(PROVIDERS.map((provider, index) => [provider, PROVIDERS[(index + 1) % PROVIDERS.length]!] as const))(
    'of %s is replaced by its fallback of %s after 30 s, which continues with what was done',
    async (provider, fallback) => {
      const turns: ModelTurn[] = [{ ...send, reasoning: 'My secret thoughts.' }]
      const pair = await createPair(provider, turns, { otherwise: { failure: 'reset' }, fallback })
      const run = startRun()
      await run.execute(pair.agent)
      expect(tell(run)).toEqual([
        `main: ${provider}:big`,
        "The model's API cannot be reached. The run continues with spare in place of main.",
        `spare: ${fallback}:small`,
      ])
      expect(run.sent).toHaveLength(1)
      expect(pair.clock.nowMs).toBe(30_000)
      const asked = JSON.stringify(pair.second.requests[0]?.body)
      expect(asked).toContain('hello')
      expect(asked).not.toContain('secret thoughts')
      expect(pair.lines).toContainEqual(expect.objectContaining({ msg: 'model.fallback_used', fallback: 'spare' }))
    },
  )

  test.each([{ apiKey: 'sk-other' }, {}])(
    'is replaced by the same model at another address or with another key: %j',
    async (other) => {
      const limited = await startModelServer({ turns: [limitedTurn], otherwise: done })
      const second = await startModelServer({ otherwise: done })
      const limits = new Set<string>()
      const modelGate: ModelGate = {
        reserve: (pace) => Promise.resolve({ delayMs: limits.has(pace) ? 60_000 : 0, isReserved: !limits.has(pace) }),
        isBlocked: (pace) => limits.has(pace),
        recordLimit: (pace) => Promise.resolve(void limits.add(pace)),
      }
      const configs = [
        modelConfig({ name: 'main', baseUrl: limited.baseUrl }),
        modelConfig({ name: 'spare', baseUrl: 'apiKey' in other ? limited.baseUrl : second.baseUrl, ...other }),
      ]
      const run = startRun()
      await run.execute(createModelAgent(configs, { modelGate }, createClock(0))).catch(() => {})
      expect(run.dataOf('model_answer')[0]).toMatchObject({ model_name: 'spare' })
    },
  )

  test.each([true, false])(
    'is replaced by the same model of another account, which cannot read its reasoning, streaming: %s',
    async (isStreaming) => {
      const server = await startModelServer({ turns: [{ ...send, reasoning: 'Well.' }, limitedTurn], otherwise: done })
      const config = modelConfig({ provider: 'openai', baseUrl: server.baseUrl, isStreaming })
      const configs = [
        { ...config, name: 'main' },
        { ...config, name: 'spare', apiKey: 'sk-other' },
      ]
      const run = startRun()
      await run.execute(createModelAgent(configs, {}, createClock(0)))
      expect(server.violations).toEqual([])
      expect(run.dataOf('model_answer').map(({ model_name: name }) => name)).toEqual(['main', 'spare'])
    },
  )

  test('is replaced only by a fallback that the organization may use', async () => {
    const broken = await startModelServer({ otherwise: { failure: 'status', status: 401 } })
    const [foreign, own] = [await startModelServer({ otherwise: done }), await startModelServer({ otherwise: done })]
    const models = [
      modelConfig({ name: 'main', baseUrl: broken.baseUrl }),
      modelConfig({ name: 'foreign', baseUrl: foreign.baseUrl, organizationIds: [randomUUID()] }),
    ]
    const run = startRun()
    const spare = modelConfig({ name: 'spare', baseUrl: own.baseUrl, organizationIds: [run.run.organizationId] })
    await run.execute(createModelAgent([...models, spare], {}, createClock(0))).catch(() => {})
    expect(tell(run)[0]).toContain('The run continues with spare in place of main.')
    await expect(startRun().execute(createModelAgent(models, {}, createClock(0)))).rejects.toMatchObject({
      code: 'model_unauthorized',
    })
    expect(foreign.requests).toEqual([])
  })

  test('is asked once by each later run while its outage lasts, and again as before after it', async () => {
    const pair = await createPair('openai', [], { otherwise: { failure: 'status', status: 503 } })
    await startRun()
      .execute(pair.agent)
      .catch(() => {})
    const [asked, waited] = [pair.first.requests.length, pair.clock.nowMs]
    expect(asked).toBeGreaterThan(3)
    // It would summarize the session first.
    const earlier = { runId: 'r', workflowName: 'Orders', inputMessage: '', status: 'succeeded' as const, error: null }
    const history = [{ ...earlier, context: 'x'.repeat(30_000), steps: [] }]
    const next = createInMemoryRun({ sources: [source], context: 'hello', history })
    await next.execute(pair.agent).catch(() => {})
    expect([pair.first.requests.length - asked, pair.clock.nowMs - waited]).toEqual([1, 0])
    pair.first.script(send, done)
    const last = startRun()
    await last.execute(pair.agent)
    expect(tell(last)).toEqual(['main: openai:big', 'main: openai:big'])
  })

  test('has no outage any more once it has refused a request', async () => {
    const unavailable: ModelTurn = { failure: 'status', status: 503 }
    const pair = await createPair('openai', [unavailable, { failure: 'status', status: 400 }], { otherwise: done })
    await expect(startRun().execute(pair.agent)).rejects.toMatchObject({ code: 'model_request_refused' })
    pair.clock.nowMs += 3_600_000
    pair.first.script(unavailable, send, done)
    const next = startRun()
    await next.execute(pair.agent)
    expect(tell(next)).toEqual(['main: openai:big', 'main: openai:big'])
  })

  test('is not asked again by a run that continued with the fallback, whenever its runner died', async () => {
    for (const when of ['before', 'after'] as const) {
      const pair = await createPair('anthropic', [], {
        otherwise: ({ body }) =>
          JSON.stringify(body).includes('Accepted') ? { failure: 'status', status: 500 } : send,
      })
      const run = startRun()
      await executeWithCrashes(run, pair.agent, when)
      expect(run.sent).toHaveLength(1)
      expect(tell(run).at(-1)).toBe('spare: anthropic:small')
      expect(tell(run)).toHaveLength(3)
    }
  })

  test.each([
    [{ failure: 'status', status: 401 }, 1],
    [{ failure: 'status', status: 404 }, 1],
    [{ failure: 'status', status: 429, code: 'insufficient_quota' }, 1],
  ] as const)('is replaced at once where only the operator can help: %j', async (otherwise, requests) => {
    const pair = await createPair('openai-compatible', [send], { otherwise })
    const run = startRun()
    await run.execute(pair.agent)
    expect([pair.first.requests.length - 1, pair.clock.nowMs]).toEqual([requests, 0])
    expect(tell(run)).toHaveLength(3)
  })

  test('is replaced where it limits requests for longer, and without a fallback for the fallback the run is parked', async () => {
    const pair = await createPair('google', [send], { otherwise: limitedTurn })
    const run = startRun()
    await run.execute(pair.agent)
    expect(tell(run)).toHaveLength(3)
    const both = await createPair('google', [], { otherwise: limitedTurn })
    await both.second.close()
    await expect(startRun().execute(both.agent)).rejects.toMatchObject({ name: 'RunParkedError' })
  })
})
