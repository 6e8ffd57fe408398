import { APP_ERROR_CODES, ErrorCodeOf } from '../errors.ts'
import { InternalErrorBody } from '../internal/resources.ts'
import { buildOpenApi, type DescribedOperation } from '../schema/build-openapi.ts'
import { Closed, Optional, type Static, Unknown } from '../schema/objects.ts'
import { type Access, APP_OPERATIONS, type AppOperation, bodyLimitsOf, isOpen } from './operations.ts'

/**
 * The error body of the application's API: also that of a failed verification, and the current object after a conflict.
 */
export const AppErrorBody = Closed('AppErrorBody', 'What went wrong.', {
  ...InternalErrorBody.properties,
  code: ErrorCodeOf(APP_ERROR_CODES),
  current: Optional(
    Unknown('With `changed_meanwhile`: the object as it is now, as the operation that reads it answers it.'),
  ),
})
export type AppErrorBody = Static<typeof AppErrorBody>

/** The body of every error of the application's API. */
export const AppErrorResponse = Closed('AppErrorResponse', 'The body of every error.', { error: AppErrorBody })

/**
 * Describes the application's API as an OpenAPI document, from the schemas that validate its requests (contract README,
 * "Application"). `serverUrl` is what the paths are appended to.
 */
export function describeAppApi(serverUrl = 'http://127.0.0.1:8083'): Record<string, unknown> {
  return buildOpenApi({
    title: 'Workflow Automation Service: application',
    description:
      "The API of the application's own page. It may change with any release; customers' programs use the public API.\n\nEvery method but GET needs `Sec-Fetch-Site: same-origin` or an `Origin` equal to `APP_URL`.",
    serverUrl,
    credential: {
      cookie: {
        type: 'apiKey',
        in: 'cookie',
        name: '__Host-session',
        description: 'Set by the operations that sign in.',
      },
    },
    operations: Object.values<AppOperation>(APP_OPERATIONS).map(toDescribed),
    error: AppErrorResponse,
    errorCodes: APP_ERROR_CODES,
  })
}

const ACCESS_DESCRIPTIONS: Record<Access, string> = {
  public: 'Needs no sign-in.',
  link: 'Needs a one-time link, whose token is in the body.',
  signed_in: 'Needs a sign-in.',
  member: 'Needs the role `member` or a higher one.',
  admin: 'Needs the role `admin` or `owner`.',
  owner: 'Needs the role `owner`.',
}

function toDescribed(operation: AppOperation): DescribedOperation {
  const { body, description, path, success, access } = operation
  const { maxBytes, maxMembers } = bodyLimitsOf(operation)
  const limits = `\n\nA body has at most ${maxBytes / 1024} KiB, and ${maxMembers} fields and list items.`
  return {
    ...operation,
    tag: path.split('/')[2] ?? '',
    description: `${description}\n\n${ACCESS_DESCRIPTIONS[access]}${body ? limits : ''}`,
    isOpen: isOpen(operation),
    successes: [success],
  }
}
