import type { SessionQueue } from '@workflow-service/messaging'
import type { GatewayMetrics } from './gateway-metrics.ts'

/** Tells the runners of sessions that have something to run. */
export interface WakeUps {
  /** Publishes without anybody waiting; what fails is only counted, since the sweep finds the session anyway. */
  send(sessionId: string, requestId: string): void
  /** Resolves when everything sent is confirmed or has failed, at the latest after two seconds. */
  settle(): Promise<void>
}

const SETTLE_MS = 2_000

export function createWakeUps(options: {
  sessionQueue: SessionQueue
  metrics: Pick<GatewayMetrics, 'wakeUps'>
}): WakeUps {
  const { sessionQueue, metrics } = options
  const underWay = new Set<Promise<void>>()
  const publish = async (sessionId: string, requestId: string): Promise<void> => {
    const outcome = await sessionQueue.publish({ session_id: sessionId }, { requestId })
    metrics.wakeUps.inc({ outcome })
  }
  return {
    send: (sessionId, requestId) => {
      const publishing = publish(sessionId, requestId)
      underWay.add(publishing)
      void publishing.finally(() => underWay.delete(publishing))
    },
    settle: async () => {
      const { promise: expired, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, SETTLE_MS)
      await Promise.race([Promise.all(underWay), expired])
      clearTimeout(timer)
    },
  }
}
