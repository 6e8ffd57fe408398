import { AppError } from '../api/call.ts'

/** The words for an error that is not one of a field. */
export function describeError(error: unknown): string {
  if (!(error instanceof AppError)) return 'Something went wrong on this page. Reload it, then try again.'
  if (error.code === 'rate_limited') return 'Too many requests. Wait a moment, then try again.'
  if (error.code === 'forbidden_for_role') return 'Your role does not allow this. Ask an admin of your organization.'
  if (error.code === 'not_found') return 'This does not exist, or you have no access to it.'
  return error.message
}
