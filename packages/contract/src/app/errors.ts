import { APP_ERROR_CODES, ErrorCodeOf } from '../errors.ts'
import { InternalErrorBody } from '../internal/resources.ts'
import { Closed, Optional, type Static, Unknown } from '../schema/objects.ts'

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
