import { type SecretBox, SecretError, type StoredWebhookSource } from '@workflow-service/database'
import { invalidFields } from '@workflow-service/service-kit'

/**
 * Decrypts the signing secret of a source. Returns null if it has none.
 * @throws ApiError 422 on `signing_secret` if no key of SECRETS_KEY decrypts it: the secret must be entered again.
 */
export function decryptSigningSecret(secrets: SecretBox, source: StoredWebhookSource): string | null {
  if (source.signingSecret === null) return null
  try {
    return secrets.decrypt({ organizationId: source.organizationId, sourceId: source.id }, source.signingSecret)
  } catch (error) {
    if (!(error instanceof SecretError)) throw error
    throw invalidFields([{ field: 'signing_secret', code: 'value_error', message: `cannot be kept. ${error.message}` }])
  }
}
