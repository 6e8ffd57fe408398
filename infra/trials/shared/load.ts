import { setTimeout as sleep } from 'node:timers/promises'
import { type Dispatcher, request } from 'undici'

export interface Call {
  /** When it began, in ms since 1970. */
  readonly at: number
  readonly ms: number
  /** What was wrong; absent if nothing was. */
  readonly failure?: string
}

/** What a load repeats, how often, and how long. */
export interface LoadOptions<Result> {
  /** Closed loop: so many callers, each of which waits for its call before it makes the next. Default 1. */
  readonly callers?: number
  /** Closed loop: how long a caller waits between two calls. Default 0. */
  readonly pauseMs?: () => number
  /** Closed loop: the shortest time between the beginnings of two calls of a caller. Default 0. */
  readonly spacingMs?: number
  /**
   * Open loop instead: a call so often, whether or not earlier ones have ended, so that a service that stalls does not
   * get fewer.
   */
  readonly everyMs?: number
  /** Ends after this time. Default: not before `stop`. */
  readonly seconds?: number
  /** Ends after so many calls. */
  readonly count?: number
  /** @param number Counts the calls of all callers. A rejection is the call's failure. */
  readonly call: (number: number, caller: number) => Promise<Result>
}

/** A load under way. */
export type Load = ReturnType<typeof startLoad>

export function startLoad<Result>(options: LoadOptions<Result>) {
  const { callers = 1, pauseMs, spacingMs = 0, everyMs, seconds = Infinity, count = Infinity, call } = options
  const calls: Call[] = []
  const stopping = new AbortController()
  const beganMs = performance.now()
  const endsMs = beganMs + seconds * 1_000
  let begun = 0
  const isOver = (): boolean => stopping.signal.aborted || begun >= count || performance.now() >= endsMs
  const wait = async (ms: number): Promise<void> => {
    if (ms > 0) await sleep(ms, undefined, { signal: stopping.signal }).catch(() => {})
  }
  const callOnce = async (caller: number): Promise<void> => {
    const [at, startedMs] = [Date.now(), performance.now()]
    let failure: string | undefined
    try {
      await call(begun++, caller)
    } catch (error) {
      const { message, cause } = error as Error
      failure = cause instanceof Error ? cause.message : message
    }
    calls.push({ at, ms: performance.now() - startedMs, failure })
  }
  const runCaller = async (caller: number): Promise<void> => {
    while (!isOver()) {
      const startedMs = performance.now()
      await callOnce(caller)
      await wait(Math.max(pauseMs?.() ?? 0, startedMs + spacingMs - performance.now()))
    }
  }
  const runOpenly = async (intervalMs: number): Promise<void> => {
    const underWay = new Set<Promise<void>>()
    for (let number = 0; !isOver(); number += 1) {
      const running = callOnce(0).finally(() => underWay.delete(running))
      underWay.add(running)
      await wait(beganMs + (number + 1) * intervalMs - performance.now())
    }
    await Promise.all(underWay)
  }
  const running =
    everyMs === undefined ? Array.from({ length: callers }, (_, caller) => runCaller(caller)) : [runOpenly(everyMs)]
  const done = Promise.all(running)
  return {
    calls,
    /** What was wrong with calls so far. */
    failures: (): string[] => failuresOf(calls),
    /** Resolves when the load has ended and all its calls have. */
    done,
    /** Begins no further call, and resolves like `done`. */
    async stop() {
      stopping.abort()
      await done
    },
  }
}

/**
 * Runs a load with an end, and resolves to its calls. @throws Error if one failed: failures are fast and would distort
 * figures.
 */
export async function runLoad<Result>(options: LoadOptions<Result>): Promise<readonly Call[]> {
  const load = startLoad(options)
  await load.done
  return assertSucceeded(load.calls)
}

function failuresOf(calls: readonly Call[]): string[] {
  return calls.flatMap(({ failure }) => failure ?? [])
}

/** @throws Error if one of the calls failed. */
export function assertSucceeded(calls: readonly Call[]): readonly Call[] {
  const failures = failuresOf(calls)
  if (failures.length === 0) return calls
  throw new Error(`${failures.length} of ${calls.length} calls failed, such as: ${failures[0]}`)
}

/** A request and the status that it must be answered with. */
export interface ExpectedRequest {
  /** Default GET. */
  readonly method?: 'GET' | 'POST' | 'PUT'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** Default 200. */
  readonly status?: number
  /** Default 30,000. */
  readonly timeoutMs?: number
  readonly dispatcher?: Dispatcher
}

/** Sends a request, and repeats none. */
export async function requestOnce(
  url: string,
  { method = 'GET', headers, body, timeoutMs = 30_000, dispatcher }: ExpectedRequest = {},
): Promise<{ status: number; text: string }> {
  const response = await request(url, {
    method,
    headers: { ...headers },
    body: body ?? null,
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    dispatcher,
  })
  return { status: response.statusCode, text: await response.body.text() }
}

/** Sends a request, and resolves to the body of its response. @throws Error if the status is another one. */
export async function send(url: string, options: ExpectedRequest = {}): Promise<string> {
  const { status, text } = await requestOnce(url, options)
  if (status === (options.status ?? 200)) return text
  throw new Error(`${new URL(url).pathname}: ${status} ${text.slice(0, 200)}`)
}
