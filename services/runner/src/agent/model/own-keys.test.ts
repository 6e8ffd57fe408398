import { describe, expect, test } from '@jest/globals'
import { createCapturedLogger, type ModelTurn } from '@workflow-service/testkit'
import { useStubModel } from '@workflow-service/testkit/use-stub-model'
import type { OwnModelKey } from '../agent.ts'
import { createInMemoryRun, type InMemoryRunOptions, webhookSource } from '../../../test/support/in-memory-run.ts'
import { callTool, end, PROVIDERS, streaming } from '../../../test/support/model-agent.ts'
import { modelConfig } from '../../../test/support/model-config.ts'
import type { ModelConfig } from '../agent-settings.ts'
import { createModelAgent } from './model-agent.ts'
import { OPEN_GATE } from './model-gate.ts'

const sources = [webhookSource('Order intake', { message: 'x' })]
const OWN = 'sk-own-key-0123456789'
const SHARED = 'sk-test-0123456789'
const ownKey = (key: string | null = OWN): OwnModelKey => ({ id: crypto.randomUUID(), model: 'fast', key })
const ends = end('nothing_to_do')

const startModelServer = useStubModel()

async function startModel(turn: ModelTurn, changes: Partial<ModelConfig> = {}) {
  const server = await startModelServer({ otherwise: turn })
  return { server, config: modelConfig({ name: 'fast', baseUrl: server.baseUrl, apiKey: SHARED, ...changes }) }
}

describe('a key of an organization’s own', () => {
  test.each(PROVIDERS)(
    'is sent in place of that of the service, only for its organization, and the journal says so: %s',
    async (provider) => {
      const { server, config } = await startModel(ends, { provider, aws: { region: 'eu-central-1' } })
      const agent = createModelAgent([config])
      const own = createInMemoryRun({ sources, modelKeys: [{ ...ownKey(), model: 'other' }, ownKey()] })
      await own.execute(agent)
      const other = createInMemoryRun({ sources })
      await other.execute(agent)
      const sent = server.requests.map(({ headers }) => JSON.stringify(headers))
      expect(sent.map((headers) => [headers.includes(OWN), headers.includes(SHARED)])).toEqual([
        [true, false],
        [false, true],
      ])
      const keys = [own, other].map((run) => run.dataOf('model_answer')[0])
      expect(keys[0]).toMatchObject({ key_of: 'organization' })
      expect(keys[1]).not.toHaveProperty('key_of')
      expect(JSON.stringify([own.steps, own.prompts])).not.toContain(OWN)
    },
  )

  test('continues a run that the key of the service began, whose reasoning another account cannot read', async () => {
    const turns: ModelTurn[] = [{ ...callTool('send_to_order_intake', { message: 'hello' }), reasoning: 'Well.' }]
    const { server, config } = await startModel(end(), { provider: 'openai' })
    server.script(...turns)
    const options: InMemoryRunOptions = { sources }
    const run = createInMemoryRun(options)
    expect(await run.crashAt(createModelAgent([config]), 3)).toBe(true)
    options.modelKeys = [ownKey()]
    await run.execute(createModelAgent([config]))
    expect(server.violations).toEqual([])
    expect(run.dataOf('model_answer').map(({ key_of: of }) => of)).toEqual([undefined, 'organization'])
    expect(run.sent).toHaveLength(1)
  })

  test.each([
    [401, 'invalid', 'an admin enters another one, or removes it'],
    [403, 'invalid', 'an admin enters another one, or removes it'],
    [404, 'no such model', 'an admin enters another one, or removes it'],
    [429, 'insufficient_quota', 'its account has no quota left'],
  ])(
    'that is refused (%i %s) fails the run with what a person can do, without a fallback',
    async (status, said, why) => {
      const message = `${said}: ${OWN}`
      const { config } = await startModel({ failure: 'status', status, message }, { fallback: 'spare' })
      const spare = await startModel(ends, { name: 'spare' })
      const { logger, lines } = createCapturedLogger()
      const run = createInMemoryRun({ sources, modelKeys: [ownKey()] })
      const failed = run.execute(createModelAgent([config, spare.config], { logger }))
      await expect(failed).rejects.toMatchObject({
        code: 'own_key_refused',
        message: `The model's API answered ${status} to the organization's own key for fast: ${why} (page Agents)`,
      })
      expect(spare.server.requests).toEqual([])
      expect(JSON.stringify([run.steps, lines])).not.toContain(OWN)
    },
  )

  test.each([
    ['insufficient_quota', 'its account has no quota left'],
    [402, 'its account has no quota left'],
    [401, 'an admin enters another one, or removes it'],
  ])('that is refused within a stream (%s) fails the run at once in the same words', async (code, why) => {
    const { server, config } = await startModel(streaming({ error: { message: 'No', code } }), { isStreaming: true })
    const failed = createInMemoryRun({ sources, modelKeys: [ownKey()] }).execute(createModelAgent([config]))
    await expect(failed).rejects.toMatchObject({
      code: 'own_key_refused',
      message: `The model's API ended its answer with an error to the organization's own key for fast: ${why} (page Agents)`,
    })
    const shared = createInMemoryRun({ sources }).execute(createModelAgent([config]))
    const expected = code === 401 ? 'model_unauthorized' : 'model_quota_exceeded'
    await expect(shared).rejects.toMatchObject({ code: expected })
    expect(server.requests).toHaveLength(2)
  })

  test('that this runner cannot decrypt fails the run, and the key of the service is not used silently', async () => {
    const { server, config } = await startModel(ends)
    const run = createInMemoryRun({ sources, modelKeys: [ownKey(null)] })
    await expect(run.execute(createModelAgent([config]))).rejects.toMatchObject({ code: 'own_key_unreadable' })
    expect(server.requests).toEqual([])
  })

  test('has a pace of its own', async () => {
    const { config } = await startModel(ends)
    const paces: string[] = []
    const reserve = (pace: string) => Promise.resolve({ delayMs: 0, isReserved: Boolean(paces.push(pace)) })
    const modelGate = { ...OPEN_GATE, reserve }
    const agent = createModelAgent([config], { modelGate })
    const key = ownKey()
    await createInMemoryRun({ sources, modelKeys: [key] }).execute(agent)
    await createInMemoryRun({ sources }).execute(agent)
    expect(paces).toEqual([
      `openai-compatible:stub-1 ${key.id}`,
      expect.stringMatching(/^openai-compatible:stub-1 [0-9a-f]{8}$/),
    ])
  })
})
