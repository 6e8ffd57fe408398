import type { AppAnswer, AppOperationId, AppOperations } from '@workflow-service/contract'
import type { OperationRequest, OperationRules, StreamAnswer } from '@workflow-service/service-kit'
import type { Principal, Visitor } from '../auth/principal.ts'

/** Who calls an operation: a person who is signed in, except where anyone may call. */
export type CallerOf<Id extends AppOperationId> = AppOperations[Id]['access'] extends 'public' | 'link'
  ? Visitor
  : Principal

export type AppRequestOf<Id extends AppOperationId> = OperationRequest<AppOperations[Id], CallerOf<Id>>

/** An answer whose body has the type of the contract; with headers, names and values in turn. */
export type AppAnswerOf<Id extends AppOperationId> =
  | {
      /** Default: the operation's status of success. */
      readonly status?: number
      readonly headers?: readonly string[]
      readonly body?: AppAnswer<Id> extends undefined ? never : AppAnswer<Id>
    }
  | StreamAnswer

/** A handler for each operation of the application's API. */
export type AppHandlers = {
  readonly [Id in AppOperationId]: (request: AppRequestOf<Id>) => AppAnswerOf<Id> | Promise<AppAnswerOf<Id>>
}

/** Checks of operations beyond their schemas. */
export type AppRules = {
  readonly [Id in AppOperationId]?: OperationRules<AppOperations[Id], CallerOf<Id>>
}
