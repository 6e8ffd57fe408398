import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { Random } from './random.ts'

/** Precedes the text in the context of a start: the payload's field. */
export const FIELD = 'message: '

/** A start that a caller requested. Its text is unique, so that each payload can be traced to its start. */
export interface RequestedStart {
  readonly text: string
  readonly caller: number
  /** The position among the caller's starts. */
  readonly sequence: number
  /** The ids of the 202 answer, and when it was requested and answered, in ms since 1970; undefined without one: then the start may or may not have been accepted. */
  accepted:
    | {
        readonly startId: string
        readonly sessionId: string
        readonly requestedAt: number
        readonly answeredAt: number
      }
    | undefined
}

/** Callers that request starts until they are stopped. */
export interface Load {
  readonly requested: readonly RequestedStart[]
  /** Answers that no outage explains. */
  readonly wrongAnswers: readonly string[]
  /** Requests no further start, and resolves when the requests under way have ended. */
  stop(): Promise<void>
}

/** Unfinished runs per caller above which all callers wait. */
const MAX_BACKLOG_PER_CALLER = 25
/** Longer than the gateway takes for any answer. */
const REQUEST_TIMEOUT_MS = 8_000

/** For whom and how often starts are requested. */
export interface LoadOptions {
  /** The gateways that callers use in turn. */
  readonly gatewayUrls: readonly string[]
  readonly workflowId: string
  readonly apiKey: string
  /** Begins the text of each start. Default: nothing. */
  readonly name?: string
  readonly callers: number
  /** The shortest and the longest pause of a caller between two requests. */
  readonly pauseMs: readonly [number, number]
  /** A caller begins a new session after so many starts. Default: never. */
  readonly startsPerSession?: number
  readonly random: Random
  /** The number of unfinished runs; called once a second. */
  readonly countUnfinished: () => Promise<number>
}

/**
 * Starts callers that request starts over the public API. Each caller uses one session and waits for each answer, so that
 * starts are accepted in the order in which they are requested. It repeats most failed requests with the same
 * Idempotency-Key, and skips the others.
 */
export function startLoad(options: LoadOptions): Load {
  const { gatewayUrls, workflowId, apiKey, name = '', callers, pauseMs, random, countUnfinished } = options
  const { startsPerSession = Infinity } = options
  const requested: RequestedStart[] = []
  const wrongAnswers: string[] = []
  const stopping = new AbortController()
  const backlog = { isTooLong: false }
  let requests = 0

  // Runs of one session run one after the other: without a limit, the backlog would take hours after the load ends.
  const watchBacklog = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      backlog.isTooLong = (await countUnfinished().catch(() => 0)) > MAX_BACKLOG_PER_CALLER * callers
      await pause(1_000)
    }
  }

  const request = async (
    start: RequestedStart,
    sessionId: string | undefined,
    key: string | undefined,
  ): Promise<boolean> => {
    let answer: Response
    let body: unknown
    const requestedAt = Date.now()
    try {
      answer = await fetch(`${gatewayUrls[requests++ % gatewayUrls.length]}/v1/workflows/${workflowId}/start`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${apiKey}`,
          'content-type': 'application/json',
          ...(key === undefined ? {} : { 'idempotency-key': key }),
        },
        body: JSON.stringify({ context: `${FIELD}${start.text}`, session_id: sessionId }),
        signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
      })
      body = await answer.json()
    } catch {
      return false
    }
    if (answer.status === 202) {
      const { id, session_id } = body as { id: string; session_id: string }
      start.accepted = { startId: id, sessionId: session_id, requestedAt, answeredAt: Date.now() }
      return true
    }
    if (answer.status !== 503) wrongAnswers.push(`${start.text}: ${answer.status} ${JSON.stringify(body)}`)
    return false
  }

  const runCaller = async (caller: number): Promise<void> => {
    let sessionId: string | undefined
    for (let sequence = 0; !stopping.signal.aborted; sequence++) {
      const start: RequestedStart = {
        text: `${name}caller ${caller} start ${sequence}`,
        caller,
        sequence,
        accepted: undefined,
      }
      requested.push(start)
      if (sequence % startsPerSession === 0) sessionId = undefined
      const isRepeated = random.chance(0.8)
      const key = isRepeated ? randomUUID() : undefined
      while (!(await request(start, sessionId, key))) {
        if (!isRepeated || stopping.signal.aborted) break
        await pause(200)
      }
      sessionId = start.accepted?.sessionId ?? sessionId
      await pause(random.between(...pauseMs))
      while (backlog.isTooLong && !stopping.signal.aborted) await pause(200)
    }
  }

  const running = [watchBacklog(), ...Array.from({ length: callers }, (_, caller) => runCaller(caller))]
  return {
    requested,
    wrongAnswers,
    async stop() {
      stopping.abort()
      await Promise.all(running)
    },
  }
}
