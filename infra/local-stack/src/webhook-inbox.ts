import type { ReceivedWebhook } from './demo-endpoint.ts'
import type { Screen } from './screen.ts'

/** Collects the webhooks that the demo's endpoint receives until `showAll` is called, then shows each on the screen. */
export interface WebhookInbox {
  add(webhook: ReceivedWebhook): void
  /** Resolves with the webhook that carries this request id, however late; `showAll` does not show it. */
  waitFor(requestId: string): Promise<ReceivedWebhook>
  /** Shows the webhooks collected so far and all later ones. */
  showAll(sourceName: string): void
}

export function createWebhookInbox(screen: Screen): WebhookInbox {
  const collected: ReceivedWebhook[] = []
  let awaited: { requestId: string; resolve: (webhook: ReceivedWebhook) => void } | undefined
  let handle = (webhook: ReceivedWebhook): void => void collected.push(webhook)
  return {
    add: (webhook) => {
      if (awaited && hasRequestId(webhook, awaited.requestId)) {
        awaited.resolve(webhook)
        // A run may send several.
        awaited = undefined
      } else handle(webhook)
    },
    waitFor: async (requestId) => {
      const index = collected.findIndex((webhook) => hasRequestId(webhook, requestId))
      const [webhook] = index === -1 ? [] : collected.splice(index, 1)
      if (webhook) return webhook
      const { promise, resolve } = Promise.withResolvers<ReceivedWebhook>()
      awaited = { requestId, resolve }
      return await promise
    },
    showAll: (sourceName) => {
      handle = (webhook) => screen.webhookReceived(sourceName, webhook)
      for (const webhook of collected.splice(0)) handle(webhook)
    },
  }
}

function hasRequestId(webhook: ReceivedWebhook, requestId: string): boolean {
  return webhook.headers.some(([name, value]) => name.toLowerCase() === 'x-request-id' && value === requestId)
}
