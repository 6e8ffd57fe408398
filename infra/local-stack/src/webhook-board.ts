import type { ArrivedWebhook } from './demo-endpoint.ts'
import type { Screen } from './screen.ts'

/** Shows what arrives at the demo's endpoint, except what somebody waits for. */
export interface WebhookBoard {
  readonly arrived: (webhook: ArrivedWebhook) => void
  /** The payload that follows from this request. */
  readonly waitFor: (requestId: string) => Promise<ArrivedWebhook>
  readonly showFromNowOn: (sourceName: string) => void
}

/** Keeps what arrives early until it is asked for. */
export function createWebhookBoard(screen: Screen): WebhookBoard {
  const early: ArrivedWebhook[] = []
  let expected: { requestId: string; resolve: (webhook: ArrivedWebhook) => void } | undefined
  let show = (webhook: ArrivedWebhook): void => void early.push(webhook)
  return {
    arrived: (webhook) => {
      if (expected && isOf(webhook, expected.requestId)) expected.resolve(webhook)
      else show(webhook)
    },
    waitFor: async (requestId) => {
      const { promise, resolve } = Promise.withResolvers<ArrivedWebhook>()
      expected = { requestId, resolve }
      const there = early.findIndex((webhook) => isOf(webhook, requestId))
      if (there !== -1) resolve(early.splice(there, 1)[0]!)
      return await promise
    },
    showFromNowOn: (sourceName) => {
      expected = undefined
      show = (webhook) => screen.webhookArrived(sourceName, webhook)
      for (const webhook of early.splice(0)) show(webhook)
    },
  }
}

function isOf(webhook: ArrivedWebhook, requestId: string): boolean {
  return webhook.headers.some(([name, value]) => name.toLowerCase() === 'x-request-id' && value === requestId)
}
