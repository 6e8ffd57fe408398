/** An error that the user can fix. The message says what is wrong and what to do. */
export class CliError extends Error {
  override name = 'CliError'
  readonly exitStatus: 1 | 2 | 130 = 1
  /** Further fields of the error that `--json` prints. */
  readonly details: Record<string, unknown>

  constructor(message: string, details: Record<string, unknown> = {}, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.details = details
  }
}

/** Ctrl-C at a question. */
export class InterruptedError extends CliError {
  override name = 'InterruptedError'
  override readonly exitStatus = 130
}

/** Wrong usage that only the values of several arguments show. */
export class UsageError extends CliError {
  override name = 'UsageError'
  override readonly exitStatus = 2
}
