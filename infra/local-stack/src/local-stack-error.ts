/** An error that the user can fix. Its message says what is wrong and what to do. */
export class LocalStackError extends Error {
  override name = 'LocalStackError'
}

/** Describes a file system error in words. */
export function describeFileError(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'ENOSPC' || code === 'EDQUOT') return 'no space is left on the disk'
  if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS') return 'permission denied'
  if (code === 'ENOTDIR' || code === 'EEXIST') return 'a file of that name is in the way'
  return message
}
