import { SESSIONS_MESSAGE_MAX, SESSIONS_QUEUE } from '@workflow-service/contract'
import { NO_TRACING, type Tracing, withTimeout } from '@workflow-service/service-kit'
import type { SessionQueue } from './session-queue.ts'

const CLOSE_TIMEOUT_MS = 2_000

/** After the semantic conventions for messaging. */
const PUBLISH_SPAN = {
  name: `send ${SESSIONS_QUEUE}`,
  kind: 'producer',
  attributes: { 'messaging.operation.name': 'send', 'messaging.destination.name': SESSIONS_QUEUE },
} as const

type Outcome = Awaited<ReturnType<SessionQueue['publish']>>

interface Batch {
  readonly promise: Promise<Outcome>
  readonly sessionIds: string[]
}

/** Creates what publishes which sessions have starts to run (contract README, "Queue messages"). */
export function createSessionNotifier(options: {
  sessionQueue: SessionQueue
  tracing?: Tracing
  onOutcome?: (outcome: Outcome) => void
}) {
  const { sessionQueue, tracing = NO_TRACING, onOutcome = () => {} } = options
  const unconfirmed = new Set<Promise<void>>()
  let batch: Batch | undefined

  /** Publishes the sessions of starts that were recorded together with one message. */
  const publishTogether = (sessionId: string, requestId: string): Promise<Outcome> => {
    const { promise, sessionIds } = (batch ??= openBatch(requestId))
    sessionIds.push(sessionId)
    if (sessionIds.length === SESSIONS_MESSAGE_MAX) batch = undefined
    return promise
  }
  const openBatch = (requestId: string): Batch => {
    const { promise, resolve } = Promise.withResolvers<Outcome>()
    const opened: Batch = { promise, sessionIds: [] }
    // As a microtask: the starts of one statement go on together, and their message leaves before their responses.
    queueMicrotask(() => {
      if (batch === opened) batch = undefined
      const { sessionIds } = opened
      // A runner of 1.0.0 reads only messages of one session.
      const message = sessionIds.length === 1 ? { session_id: sessionIds[0]! } : { session_ids: sessionIds }
      resolve(sessionQueue.publish(message, sessionIds.length === 1 ? { requestId } : {}))
    })
    return opened
  }
  const publish = async (sessionId: string, requestId: string): Promise<void> => {
    await tracing.trace(PUBLISH_SPAN, async (span) => {
      const outcome = await publishTogether(sessionId, requestId)
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
