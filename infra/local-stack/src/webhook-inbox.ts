import type { ReceivedWebhook } from './demo-endpoint.ts'
import type { Screen } from './screen.ts'

/**
 * Collects the webhooks that the demo's endpoint receives until `showAll` is called, then shows each on the screen. Of
 * those with a wrong token, which anybody on this machine can send, it shows one line in 10 s.
 */
export type WebhookInbox = ReturnType<typeof createWebhookInbox>

const REJECTED_INTERVAL_MS = 10_000

export function createWebhookInbox(screen: Pick<Screen, 'webhookReceived' | 'webhookRejected'>) {
  const collected: ReceivedWebhook[] = []
  let rejected = { shownAtMs: -Infinity, since: 0 }
  let awaited: { requestId: string; resolve: (webhook: ReceivedWebhook) => void } | undefined
  let handle = (webhook: ReceivedWebhook): void => void collected.push(webhook)
  let sourceName = "the demo's source"
  const reject = (webhook: ReceivedWebhook): void => {
    const atMs = webhook.receivedAt.getTime()
    if (atMs - rejected.shownAtMs < REJECTED_INTERVAL_MS) rejected.since++
    else {
      screen.webhookRejected(sourceName, webhook, rejected.since)
      rejected = { shownAtMs: atMs, since: 0 }
    }
  }
  return {
    add: (webhook: ReceivedWebhook) => {
      if (!webhook.token.ok) reject(webhook)
      else if (awaited && hasRequestId(webhook, awaited.requestId)) {
        awaited.resolve(webhook)
        // A run may send several.
        awaited = undefined
      } else handle(webhook)
    },
    /** Resolves with the next webhook that carries this request id, however late; `showAll` does not show it. */
    waitFor: async (requestId: string) => {
      const { promise, resolve } = Promise.withResolvers<ReceivedWebhook>()
      awaited = { requestId, resolve }
      return await promise
    },
    /** Shows the webhooks collected so far and all later ones. */
    showAll: (name: string) => {
      sourceName = name
      handle = (webhook) => screen.webhookReceived(sourceName, webhook)
      for (const webhook of collected.splice(0)) handle(webhook)
    },
  }
}

function hasRequestId(webhook: ReceivedWebhook, requestId: string): boolean {
  return webhook.headers.some(([name, value]) => name.toLowerCase() === 'x-request-id' && value === requestId)
}
