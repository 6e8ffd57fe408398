/**
 * The service itself lacked something before a byte was sent, such as a file descriptor or a key of SECRETS_KEY. Not an
 * outcome: the record of the delivery is removed, and the caller may repeat the call. The message is a sentence for the caller.
 */
export class NotSentError extends Error {
  override name = 'NotSentError'
}
