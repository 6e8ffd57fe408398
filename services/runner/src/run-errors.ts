/** What people of the organization read about an error that only the operator of the service can repair. */
export const NOT_AVAILABLE = "The run cannot go on: the service's model is not available"

/** The run failed and another attempt would not help. `code` is stable (docs/agents.md, "Why a run failed"). */
export class RunError extends Error {
  override name = 'RunError'
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

/** Another runner may have leased the session: this runner must write nothing more, send nothing more and stop. */
export class LeaseLostError extends Error {
  override name = 'LeaseLostError'
  override message = 'The lease of the session is lost'
}

/**
 * The runner stops, or the organization is suspended: the run neither succeeded nor failed, and continues later from
 * its journal.
 */
export class RunInterruptedError extends Error {
  override name = 'RunInterruptedError'

  constructor(message = 'The run was interrupted because the runner stops') {
    super(message)
  }
}

/**
 * The run waits for something that takes long: its session and its slot are released, and a runner continues from its
 * journal after `delayMs`, or once something else makes the session acquirable. No attempt is counted.
 */
export class RunParkedError extends Error {
  override name = 'RunParkedError'
  readonly delayMs: number

  constructor(message: string, delayMs: number) {
    super(message)
    this.delayMs = delayMs
  }
}

const REPLACED_PARK_MS = 1_000

/** The run needs a file that was deleted or replaced: it is claimed anew, with the workflow as it is then. */
export class FileReplacedError extends RunParkedError {
  constructor(name: string) {
    super(`${name} was deleted or replaced`, REPLACED_PARK_MS)
  }
}
