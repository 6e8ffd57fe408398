import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { useTestFolder } from '@workflow-service/testkit/use-test-folder'
import { modelConfig } from '../../test/support/model-config.ts'
import { type RunnerConfig, readRunnerConfig } from '../config.ts'

const folder = useTestFolder()

type Agent = RunnerConfig['agent']

function readAgent(env: Record<string, string>): Agent {
  const others = { DATABASE_URL: 'postgres://localhost/x', AMQP_URL: 'amqp://x', DISPATCHER_URL: 'http://localhost' }
  return readRunnerConfig({ ...others, INTERNAL_API_TOKEN: 'x'.repeat(32), ...env }).agent
}

function read(file: string, env: Record<string, string> = {}): Agent {
  const path = join(folder, 'models.yaml')
  writeFileSync(path, file)
  return readAgent({ AGENT_MODELS: path, ...env })
}

const modelOf = (env: Record<string, string>) => readAgent(env).models.get(env['AGENT_MODEL']!)

describe('AGENT_MODEL', () => {
  test('is a model with an OpenAI-compatible API, whose key is optional', () => {
    const env = { AGENT_MODEL: 'openai-compatible:org/model:7b', AGENT_BASE_URL: 'http://localhost:11434/v1' }
    const names = { name: env.AGENT_MODEL, modelName: 'org/model:7b', baseUrl: env.AGENT_BASE_URL, apiKey: null }
    expect(modelOf(env)).toEqual(modelConfig({ ...names, timeoutMs: 120_000 }))
  })

  test('is a model of Anthropic with its limits, and options of all models apart from those of the provider', () => {
    const env = {
      AGENT_MODEL: 'anthropic:claude-sonnet-4-5',
      AGENT_API_KEY: 'sk-ant',
      AGENT_STREAMING: 'true',
      AGENT_TIMEOUT_SECONDS: '30',
      AGENT_MAX_OUTPUT_TOKENS: '2000',
      AGENT_READS: 'pdf,image',
      AGENT_MODEL_OPTIONS: '{"temperature": 0.2, "topP": 1, "topK": 40, "seed": 7, "thinking": {}}',
    }
    expect(modelOf(env)).toMatchObject({
      provider: 'anthropic',
      modelName: 'claude-sonnet-4-5',
      baseUrl: null,
      apiKey: 'sk-ant',
      isStreaming: true,
      timeoutMs: 30_000,
      maxOutputTokens: 2_000,
      reads: ['pdf', 'image'],
      options: { call: { temperature: 0.2, topP: 1, topK: 40, seed: 7 }, provider: { thinking: {} } },
    })
  })

  test('is a model of Amazon Bedrock, with an API key or an access key', () => {
    const env = { AGENT_MODEL: 'bedrock:eu.anthropic.claude-sonnet-4-5-v1:0', AWS_REGION: 'eu-central-1' }
    const withKey = modelOf({ ...env, AGENT_API_KEY: 'key' })
    expect(withKey).toMatchObject({ provider: 'bedrock', apiKey: 'key', aws: { region: 'eu-central-1' } })
    const keys = { AWS_ACCESS_KEY_ID: 'AKIA', AWS_SECRET_ACCESS_KEY: 'secret', AWS_SESSION_TOKEN: 'token' }
    expect(modelOf({ ...env, ...keys })).toMatchObject({
      modelName: 'eu.anthropic.claude-sonnet-4-5-v1:0',
      apiKey: null,
      aws: { region: 'eu-central-1', accessKeyId: 'AKIA', secretAccessKey: 'secret', sessionToken: 'token' },
    })
  })

  test.each<[Record<string, string>, RegExp]>([
    [{ AGENT_MODEL: 'gpt' }, /AGENT_MODEL .*builtin \(no model, no network\)/],
    [{ AGENT_MODEL: 'openai-compatible:' }, /AGENT_MODEL /],
    [{ AGENT_MODEL: 'openai-compatible:gpt' }, /AGENT_BASE_URL is required for openai-compatible/],
    [{ AGENT_MODEL: 'google:gemini' }, /AGENT_API_KEY is required for google/],
    [{ AGENT_MODEL: 'openai:gpt', AGENT_API_KEY: 'sk-…' }, /AGENT_API_KEY must have only letters, digits and signs/],
    [{ AGENT_MODEL: 'bedrock:nova', AGENT_API_KEY: 'key' }, /AWS_REGION is required for bedrock/],
    [{ AGENT_MODEL: 'bedrock:nova', AWS_REGION: 'eu-central-1' }, /AGENT_API_KEY is .* AWS_ACCESS_KEY_ID and AWS_SEC/],
    [{ AWS_REGION: 'eu-central-1.example.com/' }, /AWS_REGION /],
    [{ AGENT_MODEL_OPTIONS: '{temperature: 1}' }, /AGENT_MODEL_OPTIONS is not JSON \(/],
    [{ AGENT_MODEL_OPTIONS: '[1]' }, /AGENT_MODEL_OPTIONS must be a JSON object/],
    [
      { AGENT_MODEL: 'openai:gpt', AGENT_API_KEY: 'key', AGENT_MODEL_OPTIONS: '{"maxOutputTokens": 5}' },
      /AGENT_MODEL_OPTIONS must not have maxOutputTokens: use AGENT_MAX_OUTPUT_TOKENS/,
    ],
    [{ AGENT_MODEL: 'builtin', AGENT_BASE_URL: 'ftp://x' }, /AGENT_BASE_URL must be an http/],
    [{ AGENT_TIMEOUT_SECONDS: '301' }, /AGENT_TIMEOUT_SECONDS must be at most 280/],
  ])('says what is wrong with %j', (env, message) => {
    expect(() => readAgent(env)).toThrow(message)
  })
})

const FILE = `
default: fast
currency: EUR
models:
  fast:
    model: openai-compatible:org/small
    base_url: http://localhost:11434/v1
    data_region: eu
    prices: { input: 0.25, cache_read: 0.025, output: 2 }
    fallback: careful
    options: { temperature: 0, reasoningEffort: low }
    run_tokens: 5000
  careful:
    model: anthropic:claude-sonnet-4-5
    key: ANTHROPIC_KEY
    organizations: [018F3C5E-0000-7000-8000-000000000001]
`

describe('AGENT_MODELS', () => {
  test('names models with their prices, fallback and limits; other settings are the defaults of the limits', () => {
    const { defaultModel, models } = read(FILE, { ANTHROPIC_KEY: 'sk-ant', AGENT_TIMEOUT_SECONDS: '30' })
    expect(defaultModel).toBe('fast')
    expect([...models.keys()]).toEqual(['fast', 'careful'])
    expect(models.get('fast')).toEqual(
      modelConfig({
        name: 'fast',
        modelName: 'org/small',
        baseUrl: 'http://localhost:11434/v1',
        apiKey: null,
        options: { call: { temperature: 0 }, provider: { reasoningEffort: 'low' } },
        timeoutMs: 30_000,
        runTokens: 5_000,
        // The limit of a model with prices that has no other.
        maxOutputTokens: 8_192,
        dataRegion: 'eu',
        fallback: 'careful',
        prices: {
          currency: 'EUR',
          input: 250_000,
          cacheRead: 25_000,
          cacheWrite: 250_000,
          output: 2_000_000,
          reasoning: 2_000_000,
        },
      }),
    )
    expect(models.get('careful')).toMatchObject({
      apiKey: 'sk-ant',
      prices: null,
      organizationIds: ['018f3c5e-0000-7000-8000-000000000001'],
    })
  })

  test('may be JSON, and have the built-in agent as its default', () => {
    const models = { ollama: { model: 'openai-compatible:llama', base_url: 'http://localhost:11434/v1' } }
    expect(read(JSON.stringify({ default: 'builtin', models })).defaultModel).toBe('builtin')
  })

  test('names all errors of the file at once, with what to do', () => {
    const wrong = `
default: best
models:
  Fast: { model: 'openai:gpt-5', fallback: slow, prices: { input: 1, output: 2 } }
  a: { model: 'anthropic:claude', key: NOT_SET, fallback: b }
  b: { model: 'openai-compatible:x', key: QUOTED, fallback: a, options: { store: true, temperature: hot, seed: .inf } }
  c: { model: 'bedrock:nova' }
`
    const errors = [
      /AGENT_MODELS \(\S+models\.yaml\): AGENT_MODEL is set too: remove it/,
      /default best is neither builtin nor a model; the models are Fast, a, b, c/,
      /models\.Fast is not a name: use small letters/,
      /models\.Fast\.fallback slow is no model; the models are/,
      /models\.Fast\.prices need a "currency" for the file, such as USD/,
      /models\.Fast\.key is required for openai; .* the name of the environment variable that has the key/,
      /models\.a\.fallback leads back to a/,
      /models\.a\.key names the environment variable NOT_SET: set it/,
      /models\.b\.base_url is required for openai-compatible/,
      /models\.b\.key names the environment variable QUOTED, whose value must have only letters/,
      /models\.b\.options must not have store: answers are never stored/,
      /models\.b\.options must have a number as temperature/,
      /models\.b\.options must have a number as seed/,
      /models\.c\.aws_region is required for bedrock, or AWS_REGION/,
    ]
    for (const error of errors) {
      const env = { AGENT_MODEL: 'anthropic:claude', AGENT_API_KEY: 'sk-ant', QUOTED: '“sk-ant”' }
      expect(() => read(wrong, env)).toThrow(error)
    }
  })

  test.each([
    ['models: {}', /default is required/],
    ['default: a\nmodels: { a: { model: gpt, key: "sk-live-1", price: 1 } }', /models\.a\.price is not a known field/],
    ['default: a\nmodels: { a: { model: gpt } }', /models\.a\.model must match/],
    // A key in the place of the name of its variable.
    ['default: a\nmodels: { a: { model: "openai:gpt-5", key: "sk-live-2" } }', /models\.a\.key must match/],
    [
      'default: a\nmodels: { a: { model: "openai:x", key: K, base_url: "http://[::1" } }',
      /models\.a\.base_url must be a URL/,
    ],
    ['default: [', /cannot be read as YAML or JSON/],
  ])('does not accept %j, and shows no key', (file, error) => {
    expect(() => read(file)).toThrow(error)
    expect(() => read(file)).not.toThrow(/sk-live/)
  })
})
