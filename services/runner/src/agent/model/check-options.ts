import { truncateText } from '@workflow-service/contract'
import { SettingsError } from '@workflow-service/service-kit'
import { generateText, wrapLanguageModel } from 'ai'
import type { ModelConfig } from '../agent-settings.ts'
import { listCauses } from './model-error.ts'
import { adaptRequests } from './provider-requests.ts'
import { createProviderModel } from './providers.ts'

/** Thrown instead of sending the request. */
class NotSent extends Error {}

/**
 * Checks the options of the models as the packages of their providers do, which is only when they make a request: the
 * requests are made, but not sent. Otherwise each run would fail.
 * @throws SettingsError with the errors of all models.
 */
export async function checkModelOptions(models: readonly ModelConfig[]): Promise<void> {
  const errors = await Promise.all(models.map(findOptionsError))
  const found = errors.filter((error) => error !== undefined)
  if (found.length > 0) throw new SettingsError(found)
}

async function findOptionsError(config: ModelConfig): Promise<string | undefined> {
  const whose = config.name.includes(':') ? 'AGENT_MODEL_OPTIONS' : `AGENT_MODELS: the options of ${config.name}`
  if (config.provider === 'bedrock' && config.options.call.topK !== undefined) {
    // Its package would write it into `inferenceConfig`, which the API then refuses.
    return `${whose} are not options of bedrock: topK is none; use additionalModelRequestFields with the model's own name for it`
  }
  const model = wrapLanguageModel({
    model: await createProviderModel(config, () => Promise.reject(new NotSent())),
    middleware: adaptRequests(config),
  })
  try {
    await generateText({ model, prompt: 'test', maxRetries: 0 })
    return undefined
  } catch (error) {
    const causes = listCauses(error)
    if (causes.some((cause) => cause instanceof NotSent)) return undefined
    const details = causes.map(({ message }) => String(message).replace(/\s+/gu, ' ')).join(': ')
    return `${whose} are not options of ${config.provider}: ${truncateText(details, 500)}`
  }
}
