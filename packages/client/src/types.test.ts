import { expect, test } from '@jest/globals'
import { ERROR_CODES, PUBLIC_ERROR_CODES } from '@workflow-service/contract'
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

interface StartIn {
  context: client.StartParams['context']
  session_id?: client.StartParams['sessionId']
}

const shapes: Record<string, true> & {
  organization: SameShape<client.Organization, contract.OrganizationOut>
  workflow: SameShape<client.Workflow, contract.WorkflowOut>
  page: SameShape<Pick<client.Page<client.Workflow>, 'data' | 'pagination'>, contract.WorkflowPage>
  confirmation: SameShape<client.StartConfirmation, contract.WorkflowStartOut>
  startParams: SameShape<StartIn, contract.WorkflowStartIn>
  listParams: SameShape<client.ListParams, contract.WorkflowListQuery>
  fieldError: SameShape<client.FieldError, contract.FieldError>
} = {
  organization: true,
  workflow: true,
  page: true,
  confirmation: true,
  startParams: true,
  listParams: true,
  fieldError: true,
}

type Known<T> = T extends string ? ([string & {}] extends [T] ? never : T) : never
type ApiCode = Exclude<Known<client.ErrorCode>, 'unexpected_answer'>

/** A code that the contract does not have does not compile; one that the client lacks fails the test below. */
const CODES: Record<ApiCode, contract.ErrorStatus> = {
  invalid_request: 400,
  invalid_json: 400,
  unsupported_media_type: 400,
  body_too_large: 400,
  unauthorized: 401,
  insufficient_scope: 403,
  organization_suspended: 403,
  not_found: 404,
  session_closed: 409,
  workflow_inactive: 409,
  no_active_api_trigger: 409,
  no_users_with_access: 409,
  idempotency_conflict: 409,
  validation_error: 422,
  rate_limited: 429,
  internal_error: 500,
  service_unavailable: 503,
} satisfies Partial<Record<contract.ErrorCode, contract.ErrorStatus>>

test('has the shapes and the error codes of the public API', () => {
  expect(Object.values(shapes)).not.toContain(false)
  const codes = PUBLIC_ERROR_CODES.map((code) => [code, ERROR_CODES[code]])
  expect(Object.fromEntries(codes)).toEqual(CODES)
})
