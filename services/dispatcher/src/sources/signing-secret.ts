import { type SecretBox, SecretError, type StoredWebhookSource } from '@workflow-service/database'
import { invalidFields, serviceUnavailable } from '@workflow-service/service-kit'

/**
 * Decrypts the signing secret of a source. Returns null if it has none.
 * @throws ApiError 503 if SECRETS_KEY of this process lacks its key; 422 on `signing_secret` if it is damaged: then it
 *   must be entered again.
 */
export function decryptSigningSecret(secrets: SecretBox, source: StoredWebhookSource): string | null {
  return decryptStoredSecret(secrets, source, source.signingSecret, 'signing_secret')
}

/** Decrypts a secret of a webhook source or look-up, which is entered in `field`. See `decryptSigningSecret`. */
export function decryptStoredSecret(
  secrets: SecretBox,
  owner: { readonly organizationId: string; readonly id: string },
  sealed: Uint8Array | null,
  field: string,
): string | null {
  if (sealed === null) return null
  try {
    return secrets.decrypt({ organizationId: owner.organizationId, sourceId: owner.id }, sealed)
  } catch (error) {
    if (!(error instanceof SecretError)) throw error
    if (error.isKeyUnknown) {
      throw serviceUnavailable('The service does not have the key of the stored secret yet. Nothing was sent.', error)
    }
    throw invalidFields([{ field, code: 'value_error', message: `cannot be kept. ${error.message}` }])
  }
}
