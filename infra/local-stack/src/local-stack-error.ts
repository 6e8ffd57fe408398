/** Why the local stack does not start, in words that say what to do. */
export class LocalStackError extends Error {
  override name = 'LocalStackError'
}

/** A file system's fault for people. */
export function inWords(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'ENOSPC' || code === 'EDQUOT') return 'no space is left on the disk'
  if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS') return 'it may not be written'
  if (code === 'ENOTDIR' || code === 'EEXIST') return 'something of that name is there that is no folder'
  return message
}
