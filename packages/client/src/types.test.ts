import { expect, test } from '@jest/globals'
import type * as contract from '@workflow-service/contract'
import type * as client from './index.ts'

// Compile-time test: `npm run typecheck` fails if a shape of the client is not the contract's.

type Equal<A, B> =
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- an uninstantiated T compares A and B exactly
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false

/**
 * Rebuilds a type field by field, so that only names, types and optionality count. An open union counts as `string`.
 */
type Shape<T> = [T] extends [string]
  ? [string & {}] extends [T]
    ? string
    : T
  : T extends readonly (infer Item)[]
    ? Shape<Item>[]
    : T extends object
      ? { -readonly [K in keyof T]: Shape<T[K]> }
      : T

type SameShape<A, B> = Equal<Shape<A>, Shape<B>>

type Known<T> = T extends string ? ([string & {}] extends [T] ? never : T) : never

interface StartIn {
  context: client.StartParams['context']
  session_id?: client.StartParams['sessionId']
}

interface Shapes {
  organization: SameShape<client.Organization, contract.OrganizationOut>
  workflow: SameShape<client.Workflow, contract.WorkflowOut>
  page: SameShape<Pick<client.Page<client.Workflow>, 'data' | 'pagination'>, contract.WorkflowPage>
  confirmation: SameShape<client.StartConfirmation, contract.WorkflowStartOut>
  startParams: SameShape<StartIn, contract.WorkflowStartIn>
  listParams: SameShape<client.ListParams, contract.WorkflowListQuery>
  fieldError: SameShape<client.FieldError, contract.FieldError>
  run: SameShape<client.Run, contract.PublicRunOut>
  session: SameShape<client.Session, contract.PublicSessionOut>
  errorCode: Equal<Exclude<Known<client.ErrorCode>, 'unexpected_answer'>, (typeof contract.PUBLIC_ERROR_CODES)[number]>
}

type Wrong = { [Name in keyof Shapes]: Shapes[Name] extends true ? never : Name }[keyof Shapes]

test('has the shapes and the error codes of the public API', () => {
  const wrong: Wrong[] = []
  expect(wrong satisfies never[]).toEqual([])
})
