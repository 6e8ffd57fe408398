import type { PUBLIC_ERROR_CODES } from '@workflow-service/contract'

/** What a caller of the public API can do about each error; Markdown. */
export const ERROR_ACTIONS: Readonly<Record<(typeof PUBLIC_ERROR_CODES)[number], string>> = {
  invalid_request: 'Check the path, the headers and their size (16 KiB together, at most 1,000 of them).',
  invalid_json: 'Send one JSON object in UTF-8. The message says what is wrong.',
  unsupported_media_type: 'Send `Content-Type: application/json` and no `Content-Encoding`.',
  body_too_large: 'Shorten the body to 256 KiB. A context has at most 10,000 characters.',
  unauthorized:
    'Send the whole key as `Authorization: Bearer wfk_…`. If it was revoked or has expired, create another.',
  insufficient_scope: 'Use a key with the scope that the message names.',
  organization_suspended: 'Ask the operator of the service to resume the organization.',
  not_found: 'Check the id, the path and the method. List the workflows to see the ids of your organization.',
  session_closed: 'Start without `session_id`, which opens a new session.',
  workflow_inactive: 'Switch the workflow on in the application, then start it again.',
  no_active_api_trigger: 'Give the workflow a trigger with the source `api`, or switch the paused one on.',
  no_users_with_access: 'Give at least one user access to the workflow.',
  idempotency_conflict:
    'Use a new `Idempotency-Key` for each start, and the same one only to repeat a request unchanged.',
  validation_error: 'Correct the fields in `error.details`; each entry has a [field code](#field-codes).',
  rate_limited: 'Wait as many seconds as `Retry-After` says, and send more slowly.',
  internal_error: 'Try again with the same `Idempotency-Key`. Quote `error.request_id` to support if it persists.',
  service_unavailable: 'Try again after `Retry-After` seconds, with the same `Idempotency-Key`.',
}
