import type { ReceivedWebhook } from './demo-endpoint.ts'
import type { Screen } from './screen.ts'

/** Collects the webhooks that the demo's endpoint accepts until `showAll` is called, then shows each on the screen. */
export type WebhookInbox = ReturnType<typeof createWebhookInbox>

export function createWebhookInbox(screen: Pick<Screen, 'webhookReceived'>) {
  const collected: ReceivedWebhook[] = []
  let awaited: { requestId: string; resolve: (webhook: ReceivedWebhook) => void } | undefined
  let handle = (webhook: ReceivedWebhook): void => void collected.push(webhook)
  return {
    add: (webhook: ReceivedWebhook) => {
      if (awaited && webhook.requestId === awaited.requestId) {
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
    showAll: (sourceName: string) => {
      handle = (webhook) => screen.webhookReceived(sourceName, webhook)
      for (const webhook of collected.splice(0)) handle(webhook)
    },
  }
}
