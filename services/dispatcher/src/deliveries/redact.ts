/** Secrets shorter than this are not redacted, because they would match ordinary words. */
const MIN_REDACTED_LENGTH = 6

/** Replaces a secret in texts and in the log. */
export const REDACTED = '[hidden]'

/** Returns the text without secrets. */
export type Redact = (text: string) => string

/**
 * Creates a function that replaces the secrets in the texts of an endpoint, which may repeat what it was sent, also
 * percent-encoded.
 */
export function createRedactor(secrets: readonly (string | null)[]): Redact {
  // encodeURIComponent throws only for a lone surrogate, which the validation of a source refuses in a secret.
  const redacted = secrets
    .filter((secret) => secret !== null)
    .filter((secret) => secret.length >= MIN_REDACTED_LENGTH)
    .flatMap((secret) => [secret, encodeURIComponent(secret)])
  return (text) => redacted.reduce((rest, secret) => rest.replaceAll(secret, REDACTED), text)
}
