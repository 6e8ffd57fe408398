import {
  compile,
  ERROR_CODES,
  ERROR_STATUSES,
  ErrorResponse,
  OPERATIONS,
  type Operation,
  type OrganizationOut,
  type WorkflowOut,
  type WorkflowPage,
  type WorkflowStartOut,
} from '@workflow-service/contract'
import request from 'supertest'

/** What to send beside method and path. */
export interface Call {
  /** Null sends no key. */
  readonly key?: string | null
  /** Sent as JSON; a text or bytes are sent as they are. */
  readonly body?: unknown
  readonly headers?: Record<string, string>
  /** Another gateway to ask. */
  readonly url?: string | undefined
}

/** All that any operation answers: each test knows which one it called. */
export type AnswerBody = OrganizationOut & WorkflowOut & WorkflowPage & WorkflowStartOut & ErrorResponse

/** An answer that has been checked: its status is the contract's, and its body has the schema of its status. */
export interface Answer {
  readonly status: number
  readonly headers: Record<string, string>
  readonly text: string
  /** The parsed body, of whichever operation was called. */
  readonly body: AnswerBody
  /** `[field, code]` of every detail. */
  readonly faults: [field: string, code: string][]
}

const isErrorResponse = compile(ErrorResponse)
const ROUTES = Object.values<Operation>(OPERATIONS).map((operation) => ({
  operation,
  pattern: new RegExp(`^${operation.path.replaceAll(/\{\w+\}/g, '[^/]+')}$`),
  isAnswer: compile(operation.success.schema),
}))

/** Calls the gateway, and throws when its answer is not one that the contract declares. */
export async function callGateway(url: string, method: string, path: string, call: Call = {}): Promise<Answer> {
  const { key, body, headers = {} } = call
  // Supertest has a function for each method; this one takes any.
  let sending = request(url)[method.toLowerCase() as 'get'](path)
  if (key !== null && key !== undefined) sending = sending.set('Authorization', `Bearer ${key}`)
  if (body !== undefined && headers['Content-Type'] === undefined)
    sending = sending.set('Content-Type', 'application/json')
  // Bytes and texts go out as they are.
  sending = sending.set(headers).serialize((value) => value as string)
  const isRaw = typeof body === 'string' || Buffer.isBuffer(body)
  const response = await (body === undefined ? sending : sending.send((isRaw ? body : JSON.stringify(body)) as string))
  const answer: Answer = {
    status: response.status,
    headers: response.headers,
    text: response.text,
    body: (method === 'HEAD' ? undefined : JSON.parse(response.text)) as AnswerBody,
    faults: [],
  }
  const faults = faultsOfAnswer(method, path, answer)
  if (faults.length > 0) throw new Error(`${method} ${path}: ${faults.join('; ')}\n${answer.status} ${answer.text}`)
  const { details } = (answer.body as Partial<ErrorResponse> | undefined)?.error ?? {}
  return { ...answer, faults: (details ?? []).map(({ field, code }) => [field, code]) }
}

/** How an answer breaks the contract; empty when it keeps it. */
export function faultsOfAnswer(
  method: string,
  path: string,
  answer: { status: number; headers: Record<string, string | undefined>; body: unknown },
): string[] {
  const { status, headers, body } = answer
  const faults: string[] = []
  const pathname = path.split('?', 1)[0] ?? ''
  const route = ROUTES.find(
    ({ operation, pattern }) => operation.method === method.toLowerCase() && pattern.test(pathname),
  )
  if (!headers['content-type']?.startsWith('application/json')) faults.push(`content type ${headers['content-type']}`)
  if (headers['x-powered-by'] !== undefined || headers['etag'] !== undefined) faults.push('a header too many')
  if (headers['x-content-type-options'] !== 'nosniff' || headers['cache-control'] !== 'no-store')
    faults.push('no security headers')
  if (!headers['x-request-id']) faults.push('no X-Request-Id')
  if (method === 'HEAD') return faults
  if (status < 400) {
    if (route?.operation.success.status !== status) faults.push(`status ${status} is not declared`)
    else if (!route.isAnswer(body)) faults.push(`off its schema: ${JSON.stringify(route.isAnswer.errors?.slice(0, 3))}`)
    return faults
  }
  if (!(ERROR_STATUSES as readonly number[]).includes(status)) faults.push(`status ${status} is not in the contract`)
  if (!isErrorResponse(body)) return [...faults, `off its schema: ${JSON.stringify(isErrorResponse.errors)}`]
  const { code, request_id: requestId, details } = body.error
  if (ERROR_CODES[code as keyof typeof ERROR_CODES] !== status) faults.push(`code ${code} is not of status ${status}`)
  if (requestId !== headers['x-request-id']) faults.push('request_id is not X-Request-Id')
  if ((status === 422) !== (details !== undefined)) faults.push('details stand on 422 and nowhere else')
  if (status === 401 && headers['www-authenticate'] !== 'Bearer') faults.push('no WWW-Authenticate')
  if ((status === 429 || status === 503) !== (headers['retry-after'] !== undefined)) faults.push('Retry-After')
  return faults
}
