import {
  compile,
  ERROR_CODES,
  ERROR_STATUSES,
  type ErrorCode,
  errorCodesOf,
  ErrorResponse,
  OPERATIONS,
  type Operation,
  type OrganizationOut,
  type WorkflowOut,
  type WorkflowPage,
  type WorkflowStartOut,
} from '@workflow-service/contract'
import request from 'supertest'

/** The parts of a request besides method and path. */
export interface Call {
  /** Default: the key of the test organization; null sends none. */
  readonly key?: string | null
  /** Sent as JSON; text and bytes are sent unchanged. */
  readonly body?: unknown
  readonly headers?: Record<string, string>
  /** Default: the first gateway. */
  readonly url?: string | undefined
}

/** The union of all bodies: each test knows which operation it called. */
type ResponseBody = OrganizationOut & WorkflowOut & WorkflowPage & WorkflowStartOut & ErrorResponse

/** A response that the contract allows: its status is declared and its body matches the schema of that status. */
export interface GatewayResponse {
  readonly status: number
  readonly headers: Record<string, string>
  readonly text: string
  readonly body: ResponseBody
  /** `[field, code]` of every detail. */
  readonly violations: [field: string, code: string][]
}

const isErrorResponse = compile(ErrorResponse)
const ROUTES = Object.values<Operation>(OPERATIONS).map((operation) => ({
  operation,
  pattern: new RegExp(`^${operation.path.replaceAll(/\{\w+\}/g, '[^/]+')}$`),
  isSuccess: compile(operation.success.schema),
}))

/** Calls the gateway; throws when the contract does not allow the response. */
export async function callGateway(
  url: string,
  method: string,
  path: string,
  call: Call = {},
): Promise<GatewayResponse> {
  const { key, body, headers = {} } = call
  // Supertest has one function per method, all with the same signature.
  let sending = request(url)[method.toLowerCase() as 'get'](path)
  if (key !== null && key !== undefined) sending = sending.set('Authorization', `Bearer ${key}`)
  if (body !== undefined && headers['Content-Type'] === undefined)
    sending = sending.set('Content-Type', 'application/json')
  sending = sending.set(headers).serialize((value) => value as string)
  const isRaw = typeof body === 'string' || Buffer.isBuffer(body)
  const response = await (body === undefined ? sending : sending.send((isRaw ? body : JSON.stringify(body)) as string))
  const result: GatewayResponse = {
    status: response.status,
    headers: response.headers,
    text: response.text,
    body: (method === 'HEAD' ? undefined : JSON.parse(response.text)) as ResponseBody,
    violations: [],
  }
  const problems = contractProblems(method, path, result)
  if (problems.length > 0) throw new Error(`${method} ${path}: ${problems.join('; ')}\n${result.status} ${result.text}`)
  const { details } = (result.body as Partial<ErrorResponse> | undefined)?.error ?? {}
  return { ...result, violations: (details ?? []).map(({ field, code }) => [field, code]) }
}

/** Lists how a response breaks the contract. */
export function contractProblems(
  method: string,
  path: string,
  response: { status: number; headers: Record<string, string | undefined>; body: unknown },
): string[] {
  const { status, headers, body } = response
  const problems: string[] = []
  const pathname = path.split('?', 1)[0] ?? ''
  const route = ROUTES.find(
    ({ operation, pattern }) => operation.method === method.toLowerCase() && pattern.test(pathname),
  )
  if (!headers['content-type']?.startsWith('application/json')) problems.push(`content type ${headers['content-type']}`)
  if (headers['x-powered-by'] !== undefined || headers['etag'] !== undefined)
    problems.push('x-powered-by or etag is set')
  if (headers['x-content-type-options'] !== 'nosniff' || headers['cache-control'] !== 'no-store')
    problems.push('no security headers')
  if (!headers['x-request-id']) problems.push('no X-Request-Id')
  if (method === 'HEAD') return problems
  if (status < 400) {
    if (route?.operation.success.status !== status) problems.push(`status ${status} is not declared`)
    else if (!route.isSuccess(body))
      problems.push(`does not match its schema: ${JSON.stringify(route.isSuccess.errors?.slice(0, 3))}`)
    return problems
  }
  if (!(ERROR_STATUSES as readonly number[]).includes(status)) problems.push(`status ${status} is not in the contract`)
  if (!isErrorResponse(body))
    return [...problems, `does not match its schema: ${JSON.stringify(isErrorResponse.errors)}`]
  const { code, request_id: requestId, details } = body.error
  if (ERROR_CODES[code as ErrorCode] !== status) problems.push(`code ${code} is not of status ${status}`)
  if (route && !errorCodesOf(route.operation).includes(code as ErrorCode))
    problems.push(`code ${code} is not declared for ${route.operation.id}`)
  if (requestId !== headers['x-request-id']) problems.push('request_id is not X-Request-Id')
  if ((status === 422) !== (details !== undefined)) problems.push('details are for 422 only')
  if (status === 401 && headers['www-authenticate'] !== 'Bearer') problems.push('no WWW-Authenticate')
  if ((status === 429 || status === 503) !== (headers['retry-after'] !== undefined)) problems.push('Retry-After')
  return problems
}
