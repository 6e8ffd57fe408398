import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { useTestFolder } from '@workflow-service/testkit/use-test-folder'
import type { ModelConfig } from '../../src/agent/agent-settings.ts'

/** The configuration of a model for tests; the given parts replace the defaults. */
export function modelConfig(changes: Partial<ModelConfig> = {}): ModelConfig {
  return {
    name: 'openai-compatible:stub-1',
    provider: 'openai-compatible',
    modelName: 'stub-1',
    baseUrl: null,
    apiKey: 'sk-test-0123456789',
    aws: null,
    options: { call: {}, provider: {} },
    timeoutMs: 20_000,
    maxWaitMs: 86_400_000,
    fallbackAfterMs: 30_000,
    runTokens: 1_000_000,
    maxDeliveries: 50,
    maxOutputTokens: null,
    historyTokens: 8_000,
    isStreaming: false,
    reads: [],
    dataRegion: null,
    prices: null,
    fallback: null,
    organizationIds: [],
    ...changes,
  }
}

/** The tokens of an answer that nothing depends on. */
export const NO_USAGE = {
  input_tokens: 0,
  output_tokens: 0,
  cache_read_tokens: null,
  cache_write_tokens: null,
  reasoning_tokens: null,
}

/** For the test file that calls it: writes files of several models, and gives the setting that names the last one. */
export function useModelFiles() {
  const folder = useTestFolder()
  let count = 0
  return (file: object) => {
    const path = join(folder, `models-${(count += 1)}.json`)
    writeFileSync(path, JSON.stringify(file))
    return { AGENT_MODELS: path }
  }
}
