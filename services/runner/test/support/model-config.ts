import type { ModelConfig } from '../../src/agent/agent-settings.ts'

/** The configuration of a model for tests; the given parts replace the defaults. */
export function modelConfig(changes: Partial<ModelConfig> = {}): ModelConfig {
  return {
    kind: 'model',
    provider: 'openai-compatible',
    modelName: 'stub-1',
    baseUrl: null,
    apiKey: 'sk-test-0123456789',
    aws: null,
    options: { call: {}, provider: {} },
    timeoutMs: 20_000,
    maxWaitMs: 86_400_000,
    runTokens: 1_000_000,
    maxDeliveries: 50,
    maxOutputTokens: null,
    historyTokens: 8_000,
    isStreaming: false,
    ...changes,
  }
}
