import { TimeoutError } from './errors.ts'
import { Page, type PagePromise, toPagePromise } from './page.ts'
import type { RateLimit } from './rate-limit.ts'
import { type ApiRequest, type Fetch, type Hooks, isText, pause, type Received, sendRequest } from './send-request.ts'
import type {
  ListParams,
  Organization,
  PageInfo,
  Run,
  Session,
  StartConfirmation,
  StartParams,
  Workflow,
} from './types.ts'

export interface ClientOptions extends CallLimits, Hooks {
  /** An API key of the organization, `wfk_…`. Keep it out of code and of public web pages. */
  apiKey: string
  /** The address of the service, such as `https://api.example.com`; paths like `/v1/organization` are appended. */
  baseUrl: string
  /** Sent with every request. */
  headers?: Record<string, string> | undefined
  /** Used in place of the global `fetch`, for a proxy, for logs or in tests. */
  fetch?: Fetch | undefined
}

/** Limits of a call; those of a call go before those of the client. */
export interface CallLimits {
  /** Attempts after the first one. Default 2; 0 switches retries off. */
  maxRetries?: number | undefined
  /** Milliseconds for one attempt, until its whole answer is read; `runs.wait` adds 10,000. Default 15,000. */
  timeoutMs?: number | undefined
  /** Milliseconds for the call in all, delays between attempts included. Default 90,000. */
  totalTimeoutMs?: number | undefined
}

export interface RequestOptions extends CallLimits {
  /** Ends the call when it aborts. */
  signal?: AbortSignal | undefined
  /**
   * Sent as `X-Request-Id` with each attempt, to find the call in the service's logs. Absent: the service makes one.
   */
  requestId?: string | undefined
  /** Sent in addition. */
  headers?: Record<string, string> | undefined
}

export interface StartOptions extends RequestOptions {
  /**
   * Names the start: for 24 hours, the same key with the same start gives the same confirmation and starts nothing
   * again. 1 to 255 characters. Absent: the `Idempotency-Key` of the call's `headers`, or a random one for this call,
   * the same for each of its attempts.
   */
  idempotencyKey?: string | undefined
}

export interface OrganizationApi {
  /** Reads the organization that the API key belongs to. */
  get(options?: RequestOptions): Promise<Organization>
}

export interface WorkflowsApi {
  /** Lists all workflows, oldest first, active or not: `await` gives a page, `for await` the workflows of all pages. */
  list(params?: ListParams, options?: RequestOptions): PagePromise<Workflow>
  get(id: string, options?: RequestOptions): Promise<Workflow>
  /** Starts the workflow. Resolves once the start is recorded; the workflow runs a moment later. */
  start(id: string, params: StartParams, options?: StartOptions): Promise<StartConfirmation>
}

export interface RunsApi {
  /** Reads a run, by the `id` of its start. */
  get(id: string, options?: RequestOptions): Promise<Run>
  /** Resolves when the run has ended, with any status. Rejects with a `TimeoutError` after `totalTimeoutMs`. */
  wait(id: string, options?: RequestOptions): Promise<Run>
}

export interface SessionsApi {
  /** Reads a session with its latest runs. */
  get(id: string, options?: RequestOptions): Promise<Session>
}

type RawPage = Pick<Page<Workflow>, 'data' | 'pagination'>

/** Chromium sends its own. The version is that of package.json. */
const USER_AGENT = 'workflow-service-client/1.0.0'

/** How long one request waits for the end of a run, beyond `timeoutMs`. */
const WAIT_SECONDS = 10
/** From one such request to the next, also if it was answered sooner. */
const MIN_WAIT_MS = 1000

const DEFAULT_LIMITS = { maxRetries: 2, timeoutMs: 15_000, totalTimeoutMs: 90_000 }

/** What the headers of a response said of each result; results themselves have the documented fields only. */
const facts = new WeakMap<object, Omit<Received, 'value'>>()

/** What a call resolves with. */
export type Result = Organization | Workflow | StartConfirmation | Run | Session | Page<unknown>

/** Returns the id by which the service's logs know the request that gave this result. */
export function requestIdOf(result: Result): string | undefined {
  return facts.get(result)?.requestId ?? undefined
}

/** Returns the key's limit of requests as it was then; undefined if the service has none. */
export function rateLimitOf(result: Result): RateLimit | undefined {
  return facts.get(result)?.rateLimit ?? undefined
}

/**
 * A client of the public API. Every method rejects with an `ApiError`, `ConnectionError`, `TimeoutError` or
 * `AbortError`, and with a `TypeError` for arguments that cannot be sent.
 */
export class WorkflowClient {
  readonly organization: OrganizationApi
  readonly workflows: WorkflowsApi
  readonly runs: RunsApi
  readonly sessions: SessionsApi

  /** Throws a `TypeError` if the key, the address or a limit cannot be used. */
  constructor(options: ClientOptions) {
    const send = createSend(options)
    this.organization = { get: (call) => send<Organization>('/v1/organization', hasId, call) }
    const readPage = async (params: ListParams, call: RequestOptions | undefined): Promise<Page<Workflow>> => {
      const query = new URLSearchParams()
      for (const [name, value] of Object.entries(params)) if (isGiven(value)) query.set(name, String(value))
      const text = query.toString()
      const raw = await send<RawPage>(`/v1/workflows${text && `?${text}`}`, isPage, call)
      const page = new Page(raw, (cursor) => readPage({ ...params, cursor }, call))
      facts.set(page, facts.get(raw)!)
      return page
    }
    this.workflows = {
      list: (params = {}, call) => toPagePromise(readPage(params, call)),
      get: async (id, call) => send<Workflow>(pathOf(id), hasId, call),
      start: async (id, { sessionId, ...body }, { idempotencyKey, ...call } = {}) =>
        send<StartConfirmation>(`${pathOf(id)}/start`, isConfirmation, call, {
          // Unknown fields are passed on: the service names them in its error.
          body: JSON.stringify(sessionId === undefined ? body : { ...body, session_id: sessionId }),
          idempotencyKey: idempotencyKey ?? toHeaders(call.headers)['idempotency-key'] ?? randomKey(),
        }),
    }
    this.runs = {
      get: async (id, call) => send<Run>(pathOf(id, 'runs'), isRun, call),
      wait: async (id, call = {}) => {
        const { timeoutMs, totalTimeoutMs } = limitsOf(options, call)
        const limits = { ...call, timeoutMs: timeoutMs + WAIT_SECONDS * 1000 }
        const endsAt = performance.now() + totalTimeoutMs
        do {
          const pauseEndsAt = Math.min(endsAt, performance.now() + MIN_WAIT_MS)
          const run = await send<Run>(`${pathOf(id, 'runs')}?wait=${WAIT_SECONDS}`, isRun, limits, undefined, endsAt)
          if (run.finished_at !== null) return run
          // A gateway that stops, or has too many requests that wait, answers at once.
          await pause(pauseEndsAt - performance.now(), call.signal)
        } while (performance.now() < endsAt)
        throw new TimeoutError(`The run had not ended in time (totalTimeoutMs, ${totalTimeoutMs} ms).`, { attempts: 0 })
      },
    }
    this.sessions = { get: async (id, call) => send<Session>(pathOf(id, 'sessions'), isSession, call) }
  }
}

function createSend({ apiKey, baseUrl, fetch, headers, onRequest, onAnswer, ...limits }: ClientOptions) {
  if (typeof globalThis.crypto?.getRandomValues !== 'function' || typeof (fetch ?? globalThis.fetch) !== 'function') {
    throw new TypeError('This client needs fetch and WebCrypto: Node 20 or newer, Bun, Deno, a worker or a browser.')
  }
  if (typeof apiKey !== 'string' || !/^[\x21-\x7e]+$/.test(apiKey)) {
    throw new TypeError('apiKey must be an API key of the organization (wfk_…): is its setting missing?')
  }
  if (typeof baseUrl !== 'string' || !/^https?:\/\/[^/@?#]+(?:\/[^?#]*)?$/i.test(baseUrl)) {
    throw new TypeError(
      'baseUrl must be an address such as https://api.example.com, without user or query: is its setting missing?',
    )
  }
  const root = new URL(baseUrl).href.replace(/\/+$/, '')
  limitsOf(limits)
  return async <Value extends object>(
    path: string,
    isExpected: ApiRequest['isExpected'],
    { signal, requestId, headers: callHeaders, ...callLimits }: RequestOptions = {},
    start?: { body: string; idempotencyKey: string },
    endsAt?: number,
  ): Promise<Value> => {
    const { value, ...received } = await sendRequest({
      // Looked up with each call, so that a global `fetch` replaced later counts.
      fetch: fetch ?? globalThis.fetch,
      method: start ? 'POST' : 'GET',
      url: `${root}${path}`,
      isExpected,
      headers: toHeaders(
        { accept: 'application/json', 'user-agent': USER_AGENT, ...(start && { 'content-type': 'application/json' }) },
        headers,
        callHeaders,
        { authorization: `Bearer ${apiKey}`, 'x-request-id': requestId, 'idempotency-key': start?.idempotencyKey },
      ),
      ...start,
      ...limitsOf(limits, callLimits),
      ...(endsAt !== undefined && { endsAt }),
      ...(signal && { signal }),
      onRequest,
      onAnswer,
    })
    facts.set(value as object, received)
    return value as Value
  }
}

/** Returns the last given value of each header. `Headers` refuses what HTTP cannot carry, before anything is sent. */
function toHeaders(...given: readonly (Record<string, string | undefined> | undefined)[]): Record<string, string> {
  const headers = new Headers()
  for (const each of given) {
    for (const [name, value] of Object.entries(each ?? {})) if (isGiven(value)) headers.set(name, value)
  }
  return Object.fromEntries(headers)
}

/** Null, which the types do not have, would be sent as the text `null`: starts would share such an Idempotency-Key. */
const isGiven = <Value>(value: Value): value is NonNullable<Value> => value !== undefined && value !== null

/** Returns the last given value of each limit. */
function limitsOf(...given: readonly CallLimits[]): Required<CallLimits> {
  const limits = { ...DEFAULT_LIMITS }
  for (const each of given) {
    for (const name of ['maxRetries', 'timeoutMs', 'totalTimeoutMs'] as const) limits[name] = each[name] ?? limits[name]
  }
  const { maxRetries, timeoutMs, totalTimeoutMs } = limits
  if (!(Number.isInteger(maxRetries) && maxRetries >= 0))
    throw new TypeError('maxRetries must be a whole number from 0')
  if (!(timeoutMs > 0 && totalTimeoutMs > 0)) throw new TypeError('timeoutMs and totalTimeoutMs must be above 0')
  return limits
}

// The fields of a success that callers rely on: a proxy's page or another API must not pass for a recorded start.
type Body = Readonly<Record<string, unknown>>
const hasId = (body: Body): boolean => isText(body, 'id')
const isConfirmation = (body: Body): boolean => hasId(body) && isText(body, 'workflow_id') && isText(body, 'session_id')
const isRun = (body: Body): boolean =>
  hasId(body) && isText(body, 'status') && (body['finished_at'] === null || isText(body, 'finished_at'))
const isSession = (body: Body): boolean => hasId(body) && Array.isArray(body['runs'])
const isPage = ({ data, pagination }: Body): boolean =>
  Array.isArray(data) &&
  data.every((each) => isText(each, 'id')) &&
  (isText(pagination, 'next_cursor') || (pagination as PageInfo | null)?.next_cursor === null)

function pathOf(id: string, kind: 'workflows' | 'runs' | 'sessions' = 'workflows'): string {
  // `.` and `..` would change the path, and a lone surrogate has no percent-encoding.
  if (typeof id !== 'string' || !/[^.]/.test(id) || /\p{Surrogate}/u.test(id))
    throw new TypeError(`id must be a ${kind.slice(0, -1)}'s id`)
  return `/v1/${kind}/${encodeURIComponent(id)}`
}

/** `crypto.randomUUID` is missing on web pages without TLS. */
function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')
}
