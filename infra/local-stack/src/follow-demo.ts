import { setTimeout as sleep } from 'node:timers/promises'
import type { DemoStart, EndedRun } from './demo.ts'
import type { ReceivedWebhook } from './demo-endpoint.ts'
import type { Screen } from './screen.ts'

/** The built-in agent takes a fraction of a second; a model may take longer. */
const LATE_AFTER_MS = 20_000

/**
 * Shows the webhook of the demo's run, and why the run failed or sent nothing. Resolves at the first of these; after
 * `lateAfterMs` it shows that the run has not ended yet, and goes on in the background.
 */
export async function followDemo(options: {
  screen: Pick<Screen, 'warning' | 'webhookReceived'>
  sourceName: string
  start: DemoStart
  /** The command that shows the run. */
  details: string
  received: Promise<ReceivedWebhook>
  /** Resolves to undefined when `signal` aborts first. */
  ended: Promise<EndedRun | undefined>
  signal: AbortSignal
  lateAfterMs?: number
}): Promise<void> {
  const { screen, sourceName, start, details, received, ended, signal, lateAfterMs = LATE_AFTER_MS } = options
  let hasWebhook = false
  const showWebhook = async (): Promise<void> => {
    const webhook = await received
    hasWebhook = true
    screen.webhookReceived(sourceName, webhook, start.sentAt)
  }
  const showEnd = async (): Promise<void> => {
    const run = await ended
    const hint = `All that happened: ${details}`
    if (run?.status === 'failed') screen.warning(`The demo's run failed: ${run.error}`, hint)
    // The endpoint has the webhook before the run ends.
    else if (run && !hasWebhook) screen.warning("The demo's run ended without a webhook.", hint)
  }
  const late = sleep(lateAfterMs, true, { signal, ref: false })
  const isLate = await Promise.race([showWebhook(), showEnd(), late])
  if (isLate) {
    screen.warning(
      "The demo's run has not ended yet. The agent waits for an answer of its model or of the endpoint. What it sends shows here, or why it failed.",
      `The run: ${details}`,
    )
  }
}
