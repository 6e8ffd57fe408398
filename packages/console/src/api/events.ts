import { APP_ROUTES } from '@workflow-service/contract/app-routes'
import type { EventTopic } from '@workflow-service/contract'
import { useEffect, useState } from 'react'
import { refresh, renewEndedSignIn } from './queries.ts'

/** At most one refresh in this time, so that a busy organization does not keep the page reading. */
const REFRESH_PAUSE_MS = 400
const RECONNECT_MAX_MS = 30_000

/**
 * Follows the stream of change notices while the tab is visible, and refreshes what the page shows of their topics.
 * Returns whether the connection is lost: a stream that ends once is only renewed.
 */
export function useEvents(): boolean {
  const [isLost, setIsLost] = useState(false)
  useEffect(() => {
    let source: EventSource | undefined
    let retryTimer: number | undefined
    let failures = 0
    let isRefreshing = false
    const topics = new Set<EventTopic>()

    async function refreshTopics() {
      if (isRefreshing) return
      isRefreshing = true
      while (topics.size > 0) {
        const taken = [...topics]
        topics.clear()
        const pause = new Promise((resolve) => setTimeout(resolve, REFRESH_PAUSE_MS))
        await Promise.all([refresh(taken), pause])
      }
      isRefreshing = false
    }

    function connect() {
      source = new EventSource(APP_ROUTES.streamEvents.path)
      source.addEventListener('message', ({ data }: MessageEvent<string>) => {
        for (const topic of (JSON.parse(data) as { topics: EventTopic[] }).topics) topics.add(topic)
        void refreshTopics()
      })
      source.addEventListener('open', () => {
        // Notices are lost while there is no stream, as between the first reads of a page and now.
        void refresh()
        failures = 0
        setIsLost(false)
      })
      source.addEventListener('error', () => {
        failures += 1
        // The browser reconnects by itself after a lost connection, but not after an error response.
        if (source?.readyState === EventSource.CLOSED) void reconnect(source)
        else setIsLost(failures > 1)
      })
    }

    /**
     * Connects again after an error response, which does not say whether it is the server's or the end of the sign-in.
     */
    async function reconnect(refused: EventSource) {
      const wasSignedOut = await renewEndedSignIn()
      if (source !== refused) return
      if (wasSignedOut) return connect()
      setIsLost(failures > 1)
      retryTimer = window.setTimeout(connect, Math.min(1_000 * 2 ** failures, RECONNECT_MAX_MS))
    }

    function disconnect() {
      window.clearTimeout(retryTimer)
      source?.close()
      source = undefined
    }

    function restart() {
      disconnect()
      if (document.visibilityState === 'visible') connect()
    }

    restart()
    document.addEventListener('visibilitychange', restart)
    // A stream without a network ends only after minutes; a new one fails at once.
    window.addEventListener('offline', restart)
    window.addEventListener('online', restart)
    return () => {
      document.removeEventListener('visibilitychange', restart)
      window.removeEventListener('offline', restart)
      window.removeEventListener('online', restart)
      disconnect()
    }
  }, [])
  return isLost
}
