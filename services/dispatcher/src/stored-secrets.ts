import { type SecretBox, SecretError, type SecretOwner, type StoredWebhookSource } from '@workflow-service/database'
import { invalidFields, serviceUnavailable } from '@workflow-service/service-kit'

/** Encrypts the secret of a save. Undefined, also for one that is `stored` already, keeps it; null removes it. */
export function encryptGivenSecret(
  secrets: SecretBox,
  owner: SecretOwner,
  given: string | null | undefined,
  stored: Uint8Array | null = null,
): Buffer | null | undefined {
  if (typeof given !== 'string') return given
  return isStored(secrets, owner, given, stored) ? undefined : secrets.encrypt(owner, given)
}

function isStored(secrets: SecretBox, owner: SecretOwner, given: string, stored: Uint8Array | null): boolean {
  try {
    return stored !== null && secrets.decrypt(owner, stored) === given
  } catch (error) {
    // One that cannot be decrypted is replaced.
    if (error instanceof SecretError) return false
    throw error
  }
}

/**
 * A stored secret goes only where it was entered for: a request would carry it to the new address.
 * @throws ApiError 422 on the secret's field if scheme, host or port of the URL change.
 */
export function assertSecretMayTravel(
  fields: { readonly secret: string; readonly url: string },
  storedUrl: string,
  url: string,
): void {
  if (URL.parse(url)?.origin === URL.parse(storedUrl)?.origin) return
  const message = `must be entered again, or be null, because scheme, host or port of ${fields.url} change`
  throw invalidFields([{ field: fields.secret, code: 'missing', message }])
}

/**
 * Decrypts the signing secret of a source. Returns null if it has none.
 * @throws ApiError 503 if SECRETS_KEY of this process lacks its key; 422 on `signing_secret` if it is damaged: then it
 *   must be entered again.
 */
export function decryptSigningSecret(
  secrets: SecretBox,
  { source, signingSecret }: StoredWebhookSource,
): string | null {
  const owner = { organizationId: source.organization_id, id: source.id }
  return decryptStoredSecret(secrets, owner, signingSecret, 'signing_secret')
}

/** Decrypts a secret of a webhook source or look-up, which is entered in `field`. See `decryptSigningSecret`. */
export function decryptStoredSecret(
  secrets: SecretBox,
  owner: SecretOwner,
  sealed: Uint8Array | null,
  field: string,
): string | null {
  if (sealed === null) return null
  try {
    return secrets.decrypt(owner, sealed)
  } catch (error) {
    if (!(error instanceof SecretError)) throw error
    if (error.isKeyUnknown) {
      throw serviceUnavailable('The service does not have the key of the stored secret yet. Nothing was sent.', error)
    }
    throw invalidFields([{ field, code: 'value_error', message: `cannot be kept. ${error.message}` }])
  }
}
