import { describe, expect, test } from '@jest/globals'
import { createCapturedLogger, type StubModelServer } from '@workflow-service/testkit'
import { useStubModel } from '@workflow-service/testkit/use-stub-model'
import { createInMemoryRun, webhookSource } from '../../test/support/in-memory-run.ts'
import { end } from '../../test/support/model-agent.ts'
import { modelConfig } from '../../test/support/model-config.ts'
import { type AgentConfig, BUILTIN_ONLY } from './agent-settings.ts'
import { createAgent } from './create-agent.ts'

const source = webhookSource('Audit log', { message: 'x' })
const builtin = createAgent(BUILTIN_ONLY)
const startModelServer = useStubModel()
let server: StubModelServer | undefined

async function withModel(...turns: Parameters<StubModelServer['script']>): Promise<AgentConfig> {
  server = await startModelServer({ turns })
  const model = modelConfig({ baseUrl: server.baseUrl, apiKey: null, maxOutputTokens: 500 })
  return { defaultModel: model.name, models: new Map([[model.name, model]]) }
}

const idle = end('nothing_to_do')
const startRun = (model: string | null = null) =>
  createInMemoryRun({ sources: [source], description: 'Send it to Audit log.', context: 'message: hello', model })

describe('the agent that the settings select', () => {
  test('is the built-in one or a model, which is called without a key if none is set', async () => {
    const run = startRun()
    await run.execute(createAgent(await withModel(idle)))
    expect(run.sent).toEqual([])
    expect(server?.requests[0]?.body).toMatchObject({ model: 'stub-1', max_tokens: 500 })
    expect(server?.requests[0]?.headers).not.toHaveProperty('authorization')
    const other = startRun()
    await other.execute(builtin)
    expect(other.sent).toHaveLength(1)
  })

  test('is the one that the workflow chooses, which must be one for its organization', async () => {
    const config = await withModel(idle)
    const model = [...config.models.values()][0]!
    const models = new Map([
      ['small', { ...model, name: 'small', modelName: 'small-1' }],
      ['others', { ...model, name: 'others', organizationIds: ['01890a5d-ac96-774b-bcce-b302099a8057'] }],
    ])
    const agent = createAgent({ defaultModel: 'others', models })
    const run = startRun('small')
    await run.execute(agent)
    expect(server?.requests[0]?.body).toMatchObject({ model: 'small-1' })
    expect(run.steps[0]?.data).toMatchObject({ agent: 'small' })
    expect(run.dataOf('model_answer')).toMatchObject([{ model: 'openai-compatible:small-1', model_name: 'small' }])
    const builtinRun = startRun('builtin')
    await builtinRun.execute(agent)
    expect(builtinRun.sent).toHaveLength(1)
    for (const name of ['others', 'gone', null]) {
      await expect(startRun(name).execute(agent)).rejects.toMatchObject({
        code: 'model_not_offered',
        message: `The workflow uses the model ${name ?? 'others'}, which this service does not have; choose another one`,
      })
    }
    expect(server?.requests).toHaveLength(1)
  })

  test.each([
    ['its code', 1],
    ["its provider's package", 3],
  ])('has %s loaded again after that failed, such as without free file descriptors', async (_what, failing) => {
    const { defaultModel, models } = await withModel(idle)
    const model = { ...models.get(defaultModel)! }
    const { baseUrl } = model
    let reads = 0
    Object.defineProperty(model, 'baseUrl', {
      get() {
        reads += 1
        if (reads === failing) throw new Error('EMFILE: too many open files')
        return baseUrl
      },
    })
    const agent = createAgent({ defaultModel, models: new Map([[defaultModel, model]]) })
    const run = startRun()
    await expect(run.execute(agent)).rejects.toThrow('EMFILE')
    await run.execute(agent)
    expect(server?.requests).toHaveLength(1)
  })

  test('lets the built-in agent finish a run that it began', async () => {
    const run = startRun()
    expect(await run.crashAt(builtin, 1)).toBe(true)
    await run.execute(createAgent(await withModel()))
    expect(run.sent).toHaveLength(1)
    expect(server?.requests).toEqual([])
  })

  test('fails a run that a model began when no model is set any more', async () => {
    const run = startRun()
    expect(await run.crashAt(createAgent(await withModel()), 1)).toBe(true)
    const { logger, lines } = createCapturedLogger()
    await expect(run.execute(createAgent(BUILTIN_ONLY, { logger }))).rejects.toMatchObject({
      code: 'agent_changed',
      message: "The run cannot go on: the service's model is not available",
    })
    const error = 'openai-compatible:stub-1 began this run, but now it has builtin'
    expect(lines).toMatchObject([{ msg: 'model.missing', error }])
    expect(run.sent).toEqual([])
  })
})
