import { type SecretBox, SecretError, type StoredWebhookSource } from '@workflow-service/database'
import { invalidFields, serviceUnavailable } from '@workflow-service/service-kit'

/**
 * Decrypts the signing secret of a source. Returns null if it has none.
 * @throws ApiError 503 if SECRETS_KEY of this process lacks its key; 422 on `signing_secret` if it is damaged: then it
 *   must be entered again.
 */
export function decryptSigningSecret(secrets: SecretBox, source: StoredWebhookSource): string | null {
  if (source.signingSecret === null) return null
  try {
    return secrets.decrypt({ organizationId: source.organizationId, sourceId: source.id }, source.signingSecret)
  } catch (error) {
    if (!(error instanceof SecretError)) throw error
    if (error.isKeyUnknown) {
      throw serviceUnavailable(
        'The service does not have the key of the stored signing secret yet. Nothing was sent.',
        error,
      )
    }
    throw invalidFields([{ field: 'signing_secret', code: 'value_error', message: `cannot be kept. ${error.message}` }])
  }
}
