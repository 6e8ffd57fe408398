import { truncateText } from '@workflow-service/contract'
import { SettingsError } from '@workflow-service/service-kit'
import { generateText, wrapLanguageModel } from 'ai'
import type { ModelConfig } from '../agent-settings.ts'
import { adaptRequests } from './provider-requests.ts'
import { createProviderModel } from './providers.ts'

/** Thrown instead of sending the request. */
class NotSent extends Error {}

/**
 * Checks AGENT_MODEL_OPTIONS as the package of the provider does, which is only when it makes a request: the request is
 * made, but not sent. Otherwise each run would fail.
 * @throws SettingsError
 */
export async function checkModelOptions(config: ModelConfig): Promise<void> {
  const model = wrapLanguageModel({
    model: await createProviderModel(config, () => Promise.reject(new NotSent())),
    middleware: adaptRequests(config),
  })
  try {
    await generateText({ model, prompt: 'test', maxRetries: 0 })
  } catch (error) {
    const causes = listErrors(error)
    if (causes.some((cause) => cause instanceof NotSent)) return
    const details = causes.map(({ message }) => message.replace(/\s+/gu, ' ')).join(': ')
    throw new SettingsError([
      `AGENT_MODEL_OPTIONS are not options of ${config.provider}: ${truncateText(details, 500)}`,
    ])
  }
}

/** The error, its cause, the cause's cause, and so on. */
function listErrors(error: unknown): Error[] {
  return error instanceof Error ? [error, ...listErrors(error.cause)] : []
}
