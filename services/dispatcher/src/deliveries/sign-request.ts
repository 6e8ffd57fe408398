import { createHmac } from 'node:crypto'
import {
  DELIVERY_ATTEMPT_HEADER,
  DELIVERY_ID_HEADER,
  SERVICE_SIGNATURE_HEADER,
  SERVICE_TIMESTAMP_HEADER,
  SERVICE_TOKEN_HEADER,
} from '@workflow-service/webhook-token'

/**
 * Makes the headers that identify a request and, with a secret, sign it (contract README, "Service token"). Customers'
 * `createServiceHeaders` makes the same with WebCrypto, which takes more CPU time.
 */
export function signRequest(
  secret: string | null,
  { id, attempt }: { id: string; attempt: number },
  body: string,
): Record<string, string> {
  const timestamp = String(Math.floor(Date.now() / 1000))
  const headers = {
    [DELIVERY_ID_HEADER]: id,
    [DELIVERY_ATTEMPT_HEADER]: String(attempt),
    [SERVICE_TIMESTAMP_HEADER]: timestamp,
  }
  if (secret === null) return headers
  // A string key, which Node encodes as UTF-8: a Buffer or KeyObject takes longer.
  const signature = createHmac('sha256', secret).update(timestamp).digest('hex')
  const ofBody = createHmac('sha256', secret).update(`${id}.${timestamp}.`).update(body).digest('base64')
  return {
    ...headers,
    [SERVICE_TOKEN_HEADER]: Buffer.from(`${timestamp}.${signature}`).toString('base64'),
    [SERVICE_SIGNATURE_HEADER]: `v1,${ofBody}`,
  }
}
