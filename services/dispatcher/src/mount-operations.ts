import {
  compile,
  type FieldError,
  INTERNAL_OPERATIONS,
  type InternalOperation,
  type InternalOperationId,
  toFieldErrors,
} from '@workflow-service/contract'
import { invalidFields, jsonBodyReader } from '@workflow-service/service-kit'
import { type Request, type RequestHandler, type Response, Router } from 'express'
import type { Static, TSchema } from 'typebox'
import { readQuery } from './read-query.ts'

/** A body with the largest example or payload, written with escapes and white space, still fits. */
const readBody = jsonBodyReader({ maxBytes: 1024 * 1024 })

type SchemaOf<Id extends InternalOperationId, Part extends 'params' | 'query'> =
  (typeof INTERNAL_OPERATIONS)[Id] extends Record<Part, infer Schema extends TSchema> ? Static<Schema> : undefined

/** A request whose path and query are checked; ids in lower case. The body is the handler's to check. */
export interface OperationRequest<Id extends InternalOperationId> {
  params: SchemaOf<Id, 'params'>
  query: SchemaOf<Id, 'query'>
  /** Undefined when there was none. */
  body: unknown
  /** The body as it was sent. */
  bodyText: string
  requestId: string
}

/** What a handler answers; a 204 has no body. */
export interface OperationAnswer {
  status: 200 | 201 | 204
  body?: unknown
}

/** One handler for each operation of the internal API: none can be forgotten. */
export type OperationHandlers = {
  [Id in InternalOperationId]: (request: OperationRequest<Id>) => Promise<OperationAnswer>
}

/** A handler as the mount calls it; its operation's schemas have made the request what it takes. */
type AnyHandler = (request: {
  params: Record<string, string>
  query: unknown
  body: unknown
  bodyText: string
  requestId: string
}) => Promise<OperationAnswer>

/** The routes of the internal API, as the contract's table names them. */
export function mountOperations(handlers: OperationHandlers): Router {
  const router = Router({ caseSensitive: true, strict: true })
  for (const operation of Object.values<InternalOperation>(INTERNAL_OPERATIONS)) {
    const handle = handlers[operation.id as InternalOperationId] as unknown as AnyHandler
    const path = operation.path.replaceAll(/\{(\w+)\}/g, ':$1')
    router[operation.method](path, ...(operation.body ? [readBody] : []), answerWith(operation, handle))
  }
  return router
}

function answerWith(operation: InternalOperation, handle: AnyHandler): RequestHandler {
  const checkParams = compile(operation.params)
  const checkQuery = operation.query && compile(operation.query)
  return async (req: Request, res: Response) => {
    const params = lowerCased(req.params)
    const faults: FieldError[] = checkParams(params) ? [] : toFieldErrors(checkParams.errors ?? [])
    let query: unknown
    if (operation.query && checkQuery) {
      const read = readQuery(operation.query, req.query)
      faults.push(...read.faults)
      const known = new Set(read.faults.map(({ field }) => field))
      const checked = checkQuery(read.query) ? [] : toFieldErrors(checkQuery.errors ?? [])
      faults.push(...checked.filter(({ field }) => !known.has(field)))
      query = read.query
    }
    const body = req.body as unknown
    if (operation.body && (body === undefined || body === null)) {
      faults.push({ field: 'body', code: 'missing', message: 'is required' })
    }
    if (faults.length > 0) throw invalidFields(faults)
    const answer = await handle({
      params,
      query,
      body,
      bodyText: String(res.locals['bodyText'] ?? ''),
      requestId: String(res.locals['requestId']),
    })
    res.status(answer.status)
    if (answer.body === undefined) res.end()
    else res.json(answer.body)
  }
}

function lowerCased(params: Record<string, string | string[]>): Record<string, string> {
  return Object.fromEntries(Object.entries(params).map(([name, value]) => [name, String(value).toLowerCase()]))
}
