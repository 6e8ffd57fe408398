import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { Random } from './random.ts'

/** A start that was asked for. Its text is unique, so the endpoint's record tells which start a payload is from. */
export interface AskedStart {
  readonly text: string
  /** Which of the load's sessions, and its place among the starts asked for there. */
  readonly line: number
  readonly place: number
  /** What the 202 said; undefined when none came: then the start may or may not have been accepted. */
  accepted: { readonly startId: string; readonly sessionId: string } | undefined
}

/** Starts under way. */
export interface Load {
  readonly asked: readonly AskedStart[]
  /** Answers that no outage explains. */
  readonly wrongAnswers: readonly string[]
  /** Asks for no further start, and resolves when the requests under way have ended. */
  stop(): Promise<void>
}

/** Starts of a caller that may wait for their runs on average. */
const MAX_BACKLOG_PER_LINE = 25
/** Longer than the gateway lets a caller wait. */
const REQUEST_TIMEOUT_MS = 8_000

/**
 * Callers that start a workflow over the public API as fast as `pauseMs` allows, each in a session of its own, one start
 * after the other: the order in which they are accepted is the order in which they are asked for. Most repeat a request
 * that failed under the same Idempotency-Key; some give up and go on with the next.
 */
export function startLoad(options: {
  gatewayUrl: string
  workflowId: string
  apiKey: string
  lines: number
  pauseMs: readonly [number, number]
  random: Random
  /** How many accepted starts have not ended; asked once a second. */
  countUnfinished: () => Promise<number>
}): Load {
  const { gatewayUrl, workflowId, apiKey, lines, pauseMs, random, countUnfinished } = options
  const asked: AskedStart[] = []
  const wrongAnswers: string[] = []
  const stopping = new AbortController()
  const backlog = { isTooLong: false }

  // The runs of a session follow each other: callers that never wait for them would leave hours of them behind.
  const watchBacklog = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      backlog.isTooLong = (await countUnfinished().catch(() => 0)) > MAX_BACKLOG_PER_LINE * lines
      await pause(1_000)
    }
  }

  const ask = async (start: AskedStart, sessionId: string | undefined, key: string | undefined): Promise<boolean> => {
    let answer: Response
    let body: unknown
    try {
      answer = await fetch(`${gatewayUrl}/v1/workflows/${workflowId}/start`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${apiKey}`,
          'content-type': 'application/json',
          ...(key === undefined ? {} : { 'idempotency-key': key }),
        },
        body: JSON.stringify({ context: start.text, session_id: sessionId }),
        signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
      })
      body = await answer.json()
    } catch {
      return false
    }
    if (answer.status === 202) {
      const { id, session_id } = body as { id: string; session_id: string }
      start.accepted = { startId: id, sessionId: session_id }
      return true
    }
    if (answer.status !== 503) wrongAnswers.push(`${start.text}: ${answer.status} ${JSON.stringify(body)}`)
    return false
  }

  const runLine = async (line: number): Promise<void> => {
    let sessionId: string | undefined
    for (let place = 0; !stopping.signal.aborted; place++) {
      const start: AskedStart = { text: `line ${line} start ${place}`, line, place, accepted: undefined }
      asked.push(start)
      const isRepeated = random.chance(0.8)
      const key = isRepeated ? randomUUID() : undefined
      while (!(await ask(start, sessionId, key))) {
        if (!isRepeated || stopping.signal.aborted) break
        await pause(200)
      }
      sessionId = start.accepted?.sessionId ?? sessionId
      await pause(random.between(...pauseMs))
      while (backlog.isTooLong && !stopping.signal.aborted) await pause(200)
    }
  }

  const running = [watchBacklog(), ...Array.from({ length: lines }, (_, line) => runLine(line))]
  return {
    asked,
    wrongAnswers,
    async stop() {
      stopping.abort()
      await Promise.all(running)
    },
  }
}
