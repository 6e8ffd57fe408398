import { describe, expect, test } from '@jest/globals'
import { readSettings } from '@workflow-service/service-kit'
import { Type } from 'typebox'
import { agentSettings, agentSettingsRules, toAgentConfig } from './agent-settings.ts'

const schema = Type.Object(agentSettings, agentSettingsRules)

function config(env: NodeJS.ProcessEnv) {
  return toAgentConfig(readSettings(schema, env))
}

describe("the agent's settings", () => {
  test('select the built-in agent by default', () => {
    expect(config({})).toEqual({ kind: 'builtin' })
  })

  test('select a model with an OpenAI-compatible API, whose key is optional', () => {
    const env = { AGENT_MODEL: 'openai-compatible:org/model:7b', AGENT_BASE_URL: 'http://localhost:11434/v1' }
    expect(config(env)).toEqual({
      kind: 'model',
      provider: 'openai-compatible',
      modelName: 'org/model:7b',
      baseUrl: 'http://localhost:11434/v1',
      apiKey: null,
      timeoutMs: 120_000,
      retryMs: 300_000,
      maxOutputTokens: null,
      historyTokens: 8_000,
      isStreaming: false,
    })
  })

  test('select a model of Anthropic', () => {
    const env = {
      AGENT_MODEL: 'anthropic:claude-sonnet-4-5',
      AGENT_API_KEY: 'sk-ant',
      AGENT_STREAMING: 'true',
      AGENT_TIMEOUT_SECONDS: '30',
      AGENT_MAX_OUTPUT_TOKENS: '2000',
    }
    expect(config(env)).toMatchObject({
      provider: 'anthropic',
      modelName: 'claude-sonnet-4-5',
      baseUrl: null,
      apiKey: 'sk-ant',
      isStreaming: true,
      timeoutMs: 30_000,
      maxOutputTokens: 2_000,
    })
  })

  test.each([
    [{ AGENT_MODEL: 'gpt' }, /AGENT_MODEL .*builtin \(no model, no network\)/],
    [{ AGENT_MODEL: 'openai-compatible:' }, /AGENT_MODEL /],
    [{ AGENT_MODEL: 'openai-compatible:gpt' }, /AGENT_BASE_URL is missing/],
    [{ AGENT_MODEL: 'anthropic:claude' }, /AGENT_API_KEY is missing/],
    [{ AGENT_MODEL: 'builtin', AGENT_BASE_URL: 'ftp://x' }, /AGENT_BASE_URL must be an http/],
    [{ AGENT_TIMEOUT_SECONDS: '301' }, /AGENT_TIMEOUT_SECONDS must be at most 280/],
  ])('say what is wrong with %j', (env, message) => {
    expect(() => config(env)).toThrow(message)
  })
})
