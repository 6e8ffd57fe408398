import { afterEach, describe, expect, test } from '@jest/globals'
import { createCapturedLogger, startStubModelServer, type StubModelServer } from '@workflow-service/testkit'
import { Crash, createInMemoryRun, webhookSource } from '../../test/support/in-memory-run.ts'
import type { AgentConfig } from './agent-settings.ts'
import { createAgent } from './create-agent.ts'

const source = webhookSource('Audit log', { message: 'x' })
const builtin = createAgent({ kind: 'builtin' })
let server: StubModelServer | undefined

afterEach(async () => {
  await server?.close()
})

async function modelConfig(...turns: Parameters<StubModelServer['script']>): Promise<AgentConfig> {
  server = await startStubModelServer({ turns })
  return {
    kind: 'model',
    provider: 'openai-compatible',
    modelName: 'stub-1',
    baseUrl: server.baseUrl,
    apiKey: null,
    aws: null,
    options: { call: {}, provider: {} },
    timeoutMs: 10_000,
    maxOutputTokens: 500,
    maxWaitMs: 0,
    runTokens: 1_000_000,
    maxDeliveries: 50,
    historyTokens: 1_000,
    isStreaming: false,
  }
}

describe('the agent that the settings select', () => {
  test('is the built-in one or a model, which is called without a key if none is set', async () => {
    const run = createInMemoryRun({
      sources: [source],
      description: 'Send it to Audit log.',
      context: 'message: hello',
    })
    await run.execute(
      createAgent(
        await modelConfig({
          toolCalls: [{ name: 'end_run', arguments: { status: 'nothing_to_do', reason: 'Nothing to do.' } }],
        }),
      ),
    )
    expect(run.sent).toEqual([])
    expect(server?.requests[0]?.body).toMatchObject({ model: 'stub-1', max_tokens: 500 })
    expect(server?.requests[0]?.headers).not.toHaveProperty('authorization')
    const other = createInMemoryRun({
      sources: [source],
      description: 'Send it to Audit log.',
      context: 'message: hello',
    })
    await other.execute(builtin)
    expect(other.sent).toHaveLength(1)
  })

  test('lets the built-in agent finish a run that it began', async () => {
    const run = createInMemoryRun({
      sources: [source],
      description: 'Send it to Audit log.',
      context: 'message: hello',
    })
    run.crashAt({ operation: 1, when: 'after' })
    await expect(run.execute(builtin)).rejects.toBeInstanceOf(Crash)
    run.crashAt(null)
    await run.execute(createAgent(await modelConfig()))
    expect(run.sent).toHaveLength(1)
    expect(server?.requests).toEqual([])
  })

  test('fails a run that a model began when no model is set any more', async () => {
    const run = createInMemoryRun({ sources: [source], description: 'Send it to Audit log.' })
    run.crashAt({ operation: 1, when: 'after' })
    await expect(run.execute(createAgent(await modelConfig()))).rejects.toBeInstanceOf(Crash)
    run.crashAt(null)
    const { logger, lines } = createCapturedLogger()
    await expect(run.execute(createAgent({ kind: 'builtin' }, { logger }))).rejects.toMatchObject({
      code: 'agent_changed',
      message: "The run cannot go on: the service's model is not available",
    })
    const error = 'openai-compatible:stub-1 began this run, but AGENT_MODEL is now builtin'
    expect(lines).toMatchObject([{ msg: 'model.missing', error }])
    expect(run.sent).toEqual([])
  })
})
