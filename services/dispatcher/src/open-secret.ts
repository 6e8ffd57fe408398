import { type SecretBox, SecretError, type StoredWebhookSource } from '@workflow-service/database'
import { invalidFields } from '@workflow-service/service-kit'

/**
 * The stored signing secret, or null when there is none.
 * @throws ApiError 422 on `signing_secret` when no key of SECRETS_KEY opens it: it must be entered anew.
 */
export function openSecret(secrets: SecretBox, source: StoredWebhookSource): string | null {
  if (source.signingSecret === null) return null
  try {
    return secrets.decrypt({ organizationId: source.organizationId, sourceId: source.id }, source.signingSecret)
  } catch (error) {
    if (!(error instanceof SecretError)) throw error
    throw invalidFields([{ field: 'signing_secret', code: 'value_error', message: `cannot be kept. ${error.message}` }])
  }
}
