import { OPERATIONS, type Operation, type OperationId } from '@workflow-service/contract'
import { isDatabaseUnavailable, type Principal } from '@workflow-service/database'
import { serviceUnavailable, writeJson } from '@workflow-service/service-kit'
import type { Express, Request, RequestHandler, Response } from 'express'
import type { Static, TSchema } from 'typebox'
import { type QueryRule, requestChecker } from './check-request.ts'
import { withDeadline } from './deadline.ts'
import { readJsonBody } from './read-body.ts'

type SchemaOf<Id extends OperationId, Part extends 'params' | 'query' | 'headers' | 'body'> =
  (typeof OPERATIONS)[Id] extends Record<Part, infer Schema extends TSchema> ? Static<Schema> : undefined

/** A request that has passed the guard, and whose every field is checked; ids are in lower case. */
export interface OperationRequest<Id extends OperationId> {
  readonly params: SchemaOf<Id, 'params'>
  readonly query: SchemaOf<Id, 'query'>
  readonly headers: SchemaOf<Id, 'headers'>
  readonly body: SchemaOf<Id, 'body'>
  readonly holder: Principal
  readonly requestId: string
}

/** The JSON that a handler answers, as text or bytes, with the operation's success status. */
export type OperationAnswer = string | Buffer

/** One handler for each operation of the contract: none can be forgotten. */
export type OperationHandlers = {
  readonly [Id in OperationId]: (request: OperationRequest<Id>) => OperationAnswer | Promise<OperationAnswer>
}

/** A handler as the mount calls it; its operation's schemas have made the request what it takes. */
type AnyHandler = (request: object) => OperationAnswer | Promise<OperationAnswer>

/** How long a handler may take before the answer is 503. */
const HANDLER_DEADLINE_MS = 3_000

/** Adds the routes of the public API, as the contract's table names them. */
export function mountOperations(
  app: Express,
  handlers: OperationHandlers,
  queryRules: { readonly [Id in OperationId]?: QueryRule } = {},
): void {
  for (const operation of Object.values<Operation>(OPERATIONS)) {
    const id = operation.id as OperationId
    const handle = handlers[id] as unknown as AnyHandler
    const path = operation.path.replaceAll(/\{(\w+)\}/g, ':$1')
    app[operation.method](
      path,
      ...(operation.body ? [readJsonBody] : []),
      answerWith(requestChecker(operation, queryRules[id]), operation.success.status, handle),
    )
  }
}

function answerWith(check: ReturnType<typeof requestChecker>, status: number, handle: AnyHandler): RequestHandler {
  return (req: Request, res: Response) => {
    const holder = res.locals['principal'] as Principal
    const requestId = String(res.locals['requestId'])
    const write = (body: OperationAnswer): void => {
      writeJson(res, { status, body, requestId, headers: res.locals['answerHeaders'] as string[] })
    }
    const answering = handle({ ...check(req, holder), holder, requestId })
    if (answering instanceof Promise) return inTime(answering).then(write)
    write(answering)
    return undefined
  }
}

async function inTime(answering: Promise<OperationAnswer>): Promise<OperationAnswer> {
  try {
    return await withDeadline(answering, HANDLER_DEADLINE_MS)
  } catch (error) {
    throw isDatabaseUnavailable(error)
      ? serviceUnavailable('The database does not answer; try again in a moment.', error)
      : error
  }
}
