import { describe, expect, test } from '@jest/globals'
import { readSettings } from '@workflow-service/service-kit'
import { modelConfig } from '../../test/support/model-config.ts'
import { agentSettings, agentSettingsParsers, agentSettingsRules, toAgentConfig } from './agent-settings.ts'
import { Type } from '@workflow-service/contract/type'

const schema = Type.Object(agentSettings, agentSettingsRules)

function config(env: NodeJS.ProcessEnv) {
  const { defaultModel, models } = toAgentConfig(readSettings(schema, env, { parsers: agentSettingsParsers }))
  return models.get(defaultModel)
}

describe("the agent's settings", () => {
  test('select the built-in agent by default', () => {
    expect(config({})).toBeUndefined()
  })

  test('select a model with an OpenAI-compatible API, whose key is optional', () => {
    const env = { AGENT_MODEL: 'openai-compatible:org/model:7b', AGENT_BASE_URL: 'http://localhost:11434/v1' }
    const { AGENT_BASE_URL: baseUrl } = env
    const defaults = { timeoutMs: 120_000, maxWaitMs: 86_400_000, historyTokens: 8_000, maxDeliveries: 50 }
    expect(config(env)).toEqual(
      modelConfig({ name: env.AGENT_MODEL, modelName: 'org/model:7b', baseUrl, apiKey: null, ...defaults }),
    )
  })

  test('select a model of Anthropic', () => {
    const env = {
      AGENT_MODEL: 'anthropic:claude-sonnet-4-5',
      AGENT_API_KEY: 'sk-ant',
      AGENT_STREAMING: 'true',
      AGENT_TIMEOUT_SECONDS: '30',
      AGENT_MAX_OUTPUT_TOKENS: '2000',
      AGENT_READS: 'pdf,image',
    }
    expect(config(env)).toMatchObject({
      provider: 'anthropic',
      modelName: 'claude-sonnet-4-5',
      baseUrl: null,
      apiKey: 'sk-ant',
      isStreaming: true,
      timeoutMs: 30_000,
      maxOutputTokens: 2_000,
      reads: ['pdf', 'image'],
    })
  })

  test('select a model of Amazon Bedrock, with an API key or an access key', () => {
    const env = { AGENT_MODEL: 'bedrock:eu.anthropic.claude-sonnet-4-5-v1:0', AWS_REGION: 'eu-central-1' }
    expect(config({ ...env, AGENT_API_KEY: 'key' })).toMatchObject({
      provider: 'bedrock',
      modelName: 'eu.anthropic.claude-sonnet-4-5-v1:0',
      apiKey: 'key',
      aws: { region: 'eu-central-1' },
    })
    const keys = { AWS_ACCESS_KEY_ID: 'AKIA', AWS_SECRET_ACCESS_KEY: 'secret', AWS_SESSION_TOKEN: 'token' }
    expect(config({ ...env, ...keys })).toMatchObject({
      apiKey: null,
      aws: { region: 'eu-central-1', accessKeyId: 'AKIA', secretAccessKey: 'secret', sessionToken: 'token' },
    })
  })

  test('separate the options of all models from those of the provider', () => {
    const options = '{"temperature": 0.2, "topP": 1, "topK": 40, "seed": 7, "reasoningEffort": "low"}'
    expect(config({ AGENT_MODEL: 'openai:gpt-5', AGENT_API_KEY: 'key', AGENT_MODEL_OPTIONS: options })).toMatchObject({
      options: {
        call: { temperature: 0.2, topP: 1, topK: 40, seed: 7 },
        provider: { reasoningEffort: 'low' },
      },
    })
  })

  test.each([
    [{ AGENT_MODEL: 'gpt' }, /AGENT_MODEL .*builtin \(no model, no network\)/],
    [{ AGENT_MODEL: 'openai-compatible:' }, /AGENT_MODEL /],
    [{ AGENT_MODEL: 'openai-compatible:gpt' }, /AGENT_BASE_URL is missing/],
    [{ AGENT_MODEL: 'anthropic:claude' }, /AGENT_API_KEY is missing/],
    [{ AGENT_MODEL: 'openai:gpt-5' }, /AGENT_API_KEY is missing/],
    [{ AGENT_MODEL: 'google:gemini' }, /AGENT_API_KEY is missing/],
    [{ AGENT_MODEL: 'bedrock:nova', AGENT_API_KEY: 'key' }, /AWS_REGION is missing/],
    [{ AGENT_MODEL: 'bedrock:nova', AWS_REGION: 'eu-central-1' }, /AWS_ACCESS_KEY_ID is missing.*\n.*AWS_SECRET/],
    [{ AWS_REGION: 'eu-central-1.example.com/' }, /AWS_REGION /],
    [{ AGENT_MODEL_OPTIONS: '{temperature: 1}' }, /AGENT_MODEL_OPTIONS is not JSON \(/],
    [{ AGENT_MODEL_OPTIONS: '[1]' }, /AGENT_MODEL_OPTIONS must be a JSON object/],
    [{ AGENT_MODEL_OPTIONS: '{"temperature": "hot"}' }, /must have a number from 0 to 2 as temperature/],
    [{ AGENT_MODEL_OPTIONS: '{"seed": 1.5}' }, /must have a whole number from .* as seed/],
    [{ AGENT_MODEL_OPTIONS: '{"maxOutputTokens": 5}' }, /must not have maxOutputTokens: use AGENT_MAX_OUTPUT_TOKENS/],
    [{ AGENT_MODEL: 'builtin', AGENT_BASE_URL: 'ftp://x' }, /AGENT_BASE_URL must be an http/],
    [{ AGENT_TIMEOUT_SECONDS: '301' }, /AGENT_TIMEOUT_SECONDS must be at most 280/],
  ])('say what is wrong with %j', (env, message) => {
    expect(() => config(env)).toThrow(message)
  })
})
