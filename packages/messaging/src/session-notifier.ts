import { SESSIONS_QUEUE } from '@workflow-service/contract'
import { NO_TRACING, type Tracing, withTimeout } from '@workflow-service/service-kit'
import type { SessionQueue } from './session-queue.ts'

const CLOSE_TIMEOUT_MS = 2_000

/** After the semantic conventions for messaging. */
const PUBLISH_SPAN = {
  name: `send ${SESSIONS_QUEUE}`,
  kind: 'producer',
  attributes: { 'messaging.operation.name': 'send', 'messaging.destination.name': SESSIONS_QUEUE },
} as const

/** Publishes which sessions have starts to run (contract README, "Queue messages"). */
export type SessionNotifier = ReturnType<typeof createSessionNotifier>

export function createSessionNotifier(options: {
  sessionQueue: SessionQueue
  tracing?: Tracing
  onOutcome?: (outcome: Awaited<ReturnType<SessionQueue['publish']>>) => void
}) {
  const { sessionQueue, tracing = NO_TRACING, onOutcome = () => {} } = options
  const unconfirmed = new Set<Promise<void>>()
  const publish = async (sessionId: string, requestId: string): Promise<void> => {
    await tracing.trace(PUBLISH_SPAN, async (span) => {
      const outcome = await sessionQueue.publish({ session_id: sessionId }, { requestId })
      if (outcome !== 'confirmed') span.fail(outcome)
      onOutcome(outcome)
    })
  }
  return {
    /** Publishes without waiting for the confirm: the runners' sweep finds a session whose message is lost. */
    notify(sessionId: string, requestId: string): void {
      const publishing = publish(sessionId, requestId)
      unconfirmed.add(publishing)
      void publishing.finally(() => unconfirmed.delete(publishing))
    },
    /** Resolves when all messages are confirmed or have failed, after two seconds at the latest. */
    async close(): Promise<void> {
      await withTimeout(Promise.all(unconfirmed), CLOSE_TIMEOUT_MS).catch(() => {})
    },
  }
}
