import type { AppOperationId, AppOperations, AppResponseBody } from '@workflow-service/contract'
import type { LimitedByQuotas } from '@workflow-service/database'
import {
  ApiError,
  type OperationRequest,
  type OperationRules,
  type ResponseHeaders,
  type StreamResponse,
} from '@workflow-service/service-kit'
import type { Principal, Visitor } from '../auth/principal.ts'

/** Who calls an operation: a person who is signed in, except where anyone may call. */
type CallerOf<Id extends AppOperationId> = AppOperations[Id]['access'] extends 'public' | 'link' ? Visitor : Principal

export type AppRequestOf<Id extends AppOperationId> = OperationRequest<AppOperations[Id], CallerOf<Id>> &
  Required<LimitedByQuotas>

/** A response with headers. */
export class ResponseWithHeaders<Body> {
  readonly headers: ResponseHeaders
  readonly body: Body | undefined

  constructor(headers: ResponseHeaders, body?: Body) {
    this.headers = headers
    this.body = body
  }
}

type BodyOf<Id extends AppOperationId> = AppResponseBody<Id> extends undefined ? void : AppResponseBody<Id>
type ResponseOf<Id extends AppOperationId> = BodyOf<Id> | ResponseWithHeaders<BodyOf<Id>> | StreamResponse

/** A handler for each operation of the application's API. It returns the body of the operation's success. */
export type AppHandlers = {
  readonly [Id in AppOperationId]: (request: AppRequestOf<Id>) => ResponseOf<Id> | Promise<ResponseOf<Id>>
}

/** Checks of operations beyond their schemas. */
export type AppRules = {
  readonly [Id in AppOperationId]?: OperationRules<AppOperations[Id], CallerOf<Id>>
}

/** Refuses a save whose version is not that of the stored values, which are `current`; none if they are deleted. */
export function changedMeanwhile(current: object | null | undefined, cause?: unknown): ApiError {
  const message =
    'This was changed since you opened it. Nothing was saved or sent. Read it again, and repeat your change if it still applies.'
  return new ApiError('changed_meanwhile', message, { extra: { current: current ?? null }, cause })
}
