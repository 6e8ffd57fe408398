import { readTraceContext, type TraceContext } from '@workflow-service/contract'
import type { Request, RequestHandler, Response } from 'express'
import type { ReleaseSlot } from '../in-flight-limiter.ts'
import { withTimeout } from '../with-timeout.ts'
import { responseState, onceClosed } from './response-state.ts'
import { type CheckedParts, type HttpOperation, type OperationRules, requestChecker } from './check-request.ts'
import { notFound, serviceUnavailable } from './errors.ts'
import { type BodyLimits, type JsonBody, NO_BODY, readJsonBody } from './json-body.ts'
import { createRequestSlots, type RequestSlots, type RequestSlotsOptions } from './request-slots.ts'
import { stringifyInTurns } from './stringify-in-turns.ts'
import { writeJson } from './write-json.ts'

export type OperationTable = Readonly<Record<string, HttpOperation>>

/** A request that is authorized and whose parts are checked. */
export type OperationRequest<Operation extends HttpOperation, Principal> = CheckedParts<Operation> & {
  /** The body's text as it was sent; empty when there is none. */
  readonly bodyText: string
  readonly principal: Principal
  readonly requestId: string
  /**
   * The trace of what follows from the request: that of its span (`traceRequests`), or its caller's; null without one.
   */
  readonly trace: TraceContext | null
  /** Calls back once the response has been sent or its connection was closed. */
  readonly onceAnswered: (callback: () => void) => void
}

/**
 * A handler's response: JSON as text or bytes; an object or no body, with another status than the operation's success
 * and further headers; a stream, which `stream` begins and writes; or lines of JSON.
 */
export type OperationResponse = WholeResponse | StreamResponse | LinesResponse
type WholeResponse =
  | string
  | Buffer
  | { readonly status?: number; readonly body?: object; readonly headers?: ResponseHeaders }
/** One with a list of values is sent once for each. */
export type ResponseHeaders = Readonly<Record<string, string | readonly string[]>>

/**
 * An open-ended response, such as server-sent events. It has no time limit, takes no slot and does not hold up a stop.
 */
export interface StreamResponse {
  readonly stream: (req: Request, res: Response) => void
}

/**
 * Values that are written as they come, as a line of JSON each (NDJSON). They do not reject. The request is in flight
 * until the last.
 */
interface LinesResponse {
  readonly lines: readonly Promise<object>[]
}

/** A handler for each operation of the table; a missing one does not compile. */
export type OperationHandlers<Table extends OperationTable, Principal> = {
  readonly [Id in keyof Table]: (
    request: OperationRequest<Table[Id], Principal>,
  ) => OperationResponse | Promise<OperationResponse>
}

type Authorize<Operation, Principal> = (
  req: Request,
  res: Response,
  operation: Operation,
) => Principal | Promise<Principal>

export interface OperationsOptions<Table extends OperationTable, Principal> {
  readonly operations: Table
  readonly handlers: OperationHandlers<Table, Principal>
  /**
   * Authenticates and authorizes every request before anything of it is read or answered; it throws an ApiError to
   * refuse. `operation` is undefined when no operation has the request's method and path.
   */
  readonly authorize: Authorize<Table[keyof Table] | undefined, Principal>
  readonly rules?: { readonly [Id in keyof Table]?: OperationRules<Table[Id], Principal> }
  /**
   * Authorizes again a request whose body arrived after `authorize`: its caller may have lost access meanwhile. The
   * handler gets this principal. Default: `authorize`.
   */
  readonly authorizeAgain?: Authorize<Table[keyof Table], Principal>
  readonly bodyLimits: (operation: Table[keyof Table]) => BodyLimits
  /** Limits the requests in flight; one more is answered 503. */
  readonly slots: RequestSlotsOptions<Principal>
  /** Lets requests wait for their turn. Default: none waits. */
  readonly shares?: OperationShares<Principal>
  /** Answers 503 when a handler has taken this long. Default: no limit. */
  readonly handlerTimeoutMs?: number
  /** Only our own services call: responses omit the security headers. Default: false. */
  readonly isInternal?: boolean
}

/** Shares of what the handlers take, such as database connections. */
export interface OperationShares<Principal> {
  /**
   * `target` is that of the request (path and query). Waits before the body is read, where the operation's bodies are
   * large; the body stays in the connection meanwhile.
   * The slot is free once the response has been sent or its connection was closed.
   * @throws ApiError 503 at once if too many wait, or when that takes too long
   */
  admit(operationId: string, caller: Principal, target: string): Promise<ReleaseSlot> | undefined
  /**
   * Answers a request when it is its caller's turn.
   * @throws ApiError 503 when that takes too long
   */
  run(operationId: string, caller: Principal, target: string, respond: () => void | Promise<void>): Promise<void>
}

interface RouteRequest<Principal> {
  readonly req: Request
  readonly res: Response
  readonly params: Readonly<Record<string, string>>
  readonly principal: Principal
}

/**
 * Serves a table of operations. For each request, in this order: authorize (401, 403, 429), find the route (404), wait
 * for admission (503), read the body (400; 503 without a free slot), wait for the caller's turn (503), authorize again
 * what has waited, take a slot for the response (503), check all parts (422), run the handler, write its response. Sets
 * `res.locals.operationId`; reads `res.locals.requestId` and `res.locals.responseHeaders` (names and values in turn).
 */
export function serveOperations<const Table extends OperationTable, Principal>(
  options: OperationsOptions<Table, Principal>,
): RequestHandler {
  const slots = createRequestSlots(options.slots)
  const routes = Object.keys(options.operations).map((id: keyof Table) => createRoute(id, options, slots))
  return (req, res) => {
    const { path } = req
    const method = req.method.toLowerCase()
    const route = routes.find(({ operation, pattern }) => operation.method === method && pattern.test(path))
    // Before the caller is known: an alert counts also what fails without a database to read keys from.
    if (route) res.locals.operationId = route.operation.id
    return mapMaybePromise(options.authorize(req, res, route?.operation), (principal) => {
      // See `isUnknownPath`.
      if (!route) throw notFound(`${req.method} ${path}`)
      return route.respond({ req, res, params: pathParams(route.pattern, path), principal })
    })
  }
}

/** How old the authorization of a request that waited for its turn may be. */
const MAX_UNAUTHORIZED_MS = 1_000

function createRoute<Table extends OperationTable, Principal, Id extends keyof Table>(
  id: Id,
  options: OperationsOptions<Table, Principal>,
  slots: RequestSlots<Principal>,
) {
  const { operations, handlers, rules, bodyLimits, shares, handlerTimeoutMs, isInternal } = options
  const { authorize, authorizeAgain = authorize } = options
  const operation = operations[id] as Table[Id]
  const pattern = new RegExp(`^${operation.path.replaceAll(/\{(\w+)\}/g, '(?<$1>[^/]+)')}$`)
  const { [id]: handler } = handlers
  const check = requestChecker<Table[Id], Principal>(operation, rules?.[id])
  const limits = bodyLimits(operation)

  const waitForAdmission = ({ req, res, principal }: RouteRequest<Principal>) =>
    shares?.admit(String(id), principal, req.url)?.then((release) => onceClosed(res, release))

  const readBody = ({ req, res, principal }: RouteRequest<Principal>) =>
    operation.body
      ? slots.whileReading(res, principal, (waitForTurn) => readJsonBody(req, limits, waitForTurn))
      : NO_BODY

  const inTurn = ({ req, principal }: RouteRequest<Principal>, proceed: () => void | Promise<void>) =>
    shares ? shares.run(String(id), principal, req.url, proceed) : proceed()

  const checkAndHandle = (request: RouteRequest<Principal> & { readonly body: JsonBody }) => {
    const { req, res, principal, body } = request
    const parts = check(request)
    const { requestId } = res.locals
    const trace = res.locals.trace ?? readTraceContext(req.headers)
    const onceAnswered = (callback: () => void): void => onceClosed(res, callback)
    const response = handler({ ...parts, bodyText: body.text ?? '', principal, requestId, trace, onceAnswered })
    return limitTime(response, handlerTimeoutMs)
  }

  const write = ({ req, res }: RouteRequest<Principal>, response: OperationResponse): void | Promise<void> => {
    if ('stream' in Object(response)) return beginStream(req, res, response as StreamResponse)
    if ('lines' in Object(response)) return writeLines(res, response as LinesResponse)
    const { requestId } = res.locals
    return writeResponse(res, response as WholeResponse, { requestId, status: operation.success?.status, isInternal })
  }

  // The steps in their order. Each proceeds at once unless it has to wait.
  const respond = (request: RouteRequest<Principal>): void | Promise<void> => {
    const { req, res, principal } = request
    const authorizedAt = performance.now()
    const hadArrived = !operation.body || req.complete
    // The caller may have lost access while the request waited.
    const isStillAuthorized = (): boolean => hadArrived && performance.now() - authorizedAt < MAX_UNAUTHORIZED_MS
    return mapMaybePromise(waitForAdmission(request), () =>
      mapMaybePromise(readBody(request), (body) =>
        inTurn(request, () =>
          mapMaybePromise(isStillAuthorized() ? principal : authorizeAgain(req, res, operation), (caller) =>
            slots.whileAnswering(res, caller, () =>
              mapMaybePromise(checkAndHandle({ ...request, principal: caller, body }), (response) =>
                write(request, response),
              ),
            ),
          ),
        ),
      ),
    )
  }
  return { operation, pattern, respond }
}

/** Calls `proceed` at once when the value is not a promise: awaiting it costs about 10 % of read throughput. */
export function mapMaybePromise<Value, Result>(
  value: Value | Promise<Value>,
  proceed: (value: Value) => Result,
): Result | Promise<Awaited<Result>> {
  return value instanceof Promise ? (value.then(proceed) as Promise<Awaited<Result>>) : proceed(value)
}

function limitTime(
  response: OperationResponse | Promise<OperationResponse>,
  timeoutMs: number | undefined,
): OperationResponse | Promise<OperationResponse> {
  if (timeoutMs === undefined || !(response instanceof Promise)) return response
  return withTimeout(response, timeoutMs, () => serviceUnavailable('This took too long; try again in a moment.'))
}

function beginStream(req: Request, res: Response, { stream }: StreamResponse): void {
  if (res.closed) return
  const state = responseState(res)
  state.isStream = true
  state.onStream?.()
  stream(req, res)
}

async function writeLines(res: Response, { lines }: LinesResponse): Promise<void> {
  res.writeHead(200, { 'Content-Type': 'application/x-ndjson' })
  const write = (value: object): void => void (res.closed || res.write(`${JSON.stringify(value)}\n`))
  await Promise.all(lines.map((line) => line.then(write)))
  res.end()
}

function writeResponse(
  res: Response,
  response: WholeResponse,
  { status = 200, ...options }: { requestId: string; status: number | undefined; isInternal: boolean | undefined },
): void | Promise<void> {
  const { responseHeaders: headers } = res.locals
  if (typeof response === 'string' || Buffer.isBuffer(response)) {
    return writeJson(res, { ...options, status, body: response, headers })
  }
  const all = response.headers ? [...(headers ?? []), ...toHeaderList(response.headers)] : headers
  return mapMaybePromise(response.body && stringifyInTurns(response.body), (body) =>
    writeJson(res, { ...options, status: response.status ?? status, headers: all, body }),
  )
}

/** Names and values in turn, as `writeJson` takes them. */
function toHeaderList(headers: ResponseHeaders): readonly string[] {
  return Object.entries(headers).flatMap(([name, values]) => [values].flat().flatMap((value) => [name, value]))
}

/** @throws URIError (answered 400) when a parameter is not percent-encoded UTF-8. */
function pathParams(pattern: RegExp, path: string): Record<string, string> {
  const groups = Object.entries(pattern.exec(path)?.groups ?? {})
  return Object.fromEntries(groups.map(([name, value]) => [name, decodeURIComponent(value)]))
}
