/** An error that the user can fix. The message says what is wrong and what to do. Exit status 1. */
export class CliError extends Error {
  override name = 'CliError'
  /** Further fields of the error that `--json` prints. */
  readonly details: Record<string, unknown>

  constructor(message: string, details: Record<string, unknown> = {}, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.details = details
  }
}

/** Wrong usage that only the values of several arguments show. Exit status 2. */
export class UsageError extends CliError {
  override name = 'UsageError'
}
