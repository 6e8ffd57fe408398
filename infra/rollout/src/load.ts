import { setTimeout as sleep } from 'node:timers/promises'

/** One request that callers repeat. */
export interface RepeatedRequest {
  readonly name: string
  readonly callers: number
  readonly status: number
  /** @param number Differs for each call, also between callers. */
  request(number: number): { readonly url: string; readonly init: RequestInit }
  /** Called with the body of each expected answer. */
  onAnswer?(number: number, body: string): void
}

/** What callers saw of one request. */
export interface LoadCounts {
  readonly name: string
  requests: number
  /** What was wrong, for each request that had no answer or another status. */
  readonly failures: string[]
}

/** Callers that repeat requests until they are stopped. */
export interface Load {
  readonly counts: readonly LoadCounts[]
  /** Sends no further request, and resolves when those under way have ended. */
  stop(): Promise<void>
}

/** The pause of a caller between two requests. */
const PAUSE_MS = 20
/** A request without an answer after this time has failed. */
const TIMEOUT_MS = 30_000

/** Starts the callers. Each waits for its answer; none repeats a request that failed. */
export function startLoad(repeated: readonly RepeatedRequest[]): Load {
  const stopping = new AbortController()
  const loads = repeated.map((each) => {
    const counts: LoadCounts = { name: each.name, requests: 0, failures: [] }
    const runCaller = async (): Promise<void> => {
      while (!stopping.signal.aborted) {
        const number = counts.requests++
        const failure = await send(each, number)
        if (failure !== undefined) counts.failures.push(failure)
        await sleep(PAUSE_MS)
      }
    }
    return { counts, running: Array.from({ length: each.callers }, runCaller) }
  })
  return {
    counts: loads.map(({ counts }) => counts),
    async stop() {
      stopping.abort()
      await Promise.all(loads.flatMap(({ running }) => running))
    },
  }
}

/** Resolves to what was wrong; undefined if the answer has the expected status. */
async function send(repeated: RepeatedRequest, number: number): Promise<string | undefined> {
  const { url, init } = repeated.request(number)
  try {
    const answer = await fetch(url, { ...init, signal: AbortSignal.timeout(TIMEOUT_MS) })
    const body = await answer.text()
    if (answer.status !== repeated.status) return `${answer.status} ${body.slice(0, 200)}`
    repeated.onAnswer?.(number, body)
    return undefined
  } catch (error) {
    const { cause, message } = error as Error
    return cause instanceof Error ? cause.message : message
  }
}
