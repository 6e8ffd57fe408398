import { once } from 'node:events'
import type { EndedRun, DemoStart } from './demo.ts'
import type { ReceivedWebhook } from './demo-endpoint.ts'
import type { Screen } from './screen.ts'

/** The built-in agent takes a fraction of a second; a model may take longer. */
const LATE_AFTER_MS = 20_000

/**
 * Shows the webhook of the demo's run, and why the run failed or sent nothing. Resolves at the first of these; after
 * `lateAfterMs` it shows that the run has not ended yet, and goes on in the background, until the run has ended.
 */
export async function followDemo(options: {
  screen: Pick<Screen, 'warning' | 'webhookReceived'>
  sourceName: string
  start: DemoStart
  /** The command that shows the run. */
  details: string
  received: Promise<ReceivedWebhook>
  /** Calls `onDelay` with each reason why the run takes long; undefined when `signal` aborts. */
  untilEnd: (onDelay: (reason: string) => void) => Promise<EndedRun | undefined>
  signal: AbortSignal
  lateAfterMs?: number
}): Promise<void> {
  const { screen, sourceName, start, details, received, untilEnd, signal, lateAfterMs = LATE_AFTER_MS } = options
  let hasWebhook = false
  let hasEnded = false
  let isLate = false
  let delay = 'The agent waits for an answer of its model or of the endpoint.'
  const showWebhook = async (): Promise<void> => {
    const webhook = await received
    hasWebhook = true
    screen.webhookReceived(sourceName, webhook, start.sentAt)
  }
  const showEnd = async (): Promise<void> => {
    const run = await untilEnd((reason) => {
      delay = reason
      if (isLate) screen.warning(`The demo's run takes longer. ${delay}`)
    })
    hasEnded = run !== undefined
    const hint = `All that happened: ${details}`
    if (run?.status === 'failed') screen.warning(`The demo's run failed: ${run.error}`, hint)
    // The endpoint has the webhook before the run ends.
    else if (run && !hasWebhook) screen.warning("The demo's run ended without a webhook.", hint)
  }
  const late = AbortSignal.any([AbortSignal.timeout(lateAfterMs), signal])
  await Promise.race([showWebhook(), showEnd(), late.aborted || once(late, 'abort')])
  signal.throwIfAborted()
  if (hasWebhook || hasEnded) return
  isLate = true
  screen.warning(
    `The demo's run has not ended yet. ${delay} What it sends shows here, or why it failed.`,
    `The run: ${details}`,
  )
}
