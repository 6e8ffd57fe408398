import { dirname } from 'node:path'

/**
 * A failure of embedded PostgreSQL. Its message is one line and says what to do; `code` is set where a caller can act.
 */
export class EmbeddedPostgresError extends Error {
  override name = 'EmbeddedPostgresError'
  readonly code?: 'data_dir_in_use' | 'killed_server_ending' | 'port_taken'

  constructor(message: string, options: { code?: EmbeddedPostgresError['code']; cause?: unknown } = {}) {
    super(message, options)
    this.code = options.code
  }
}

const PORT_TAKEN = /could not bind .* Address already in use|could not create any TCP\/IP sockets/s

/** Explains why PostgreSQL or initdb ended, from what they have written. */
export function toStartError(output: string, dataDir: string, port?: number): EmbeddedPostgresError {
  if (/could not create (?:shared memory|semaphores)/.test(output)) {
    return new EmbeddedPostgresError(
      'The system allows no further shared memory or semaphores: stop other PostgreSQL servers, such as those of tests, or raise its limit',
    )
  }
  if (/No space left on device|Disk quota exceeded/.test(output)) {
    return new EmbeddedPostgresError(
      `No space left on the disk of ${dirname(dataDir)}: PostgreSQL needs about 100 MB there`,
    )
  }
  if (output.includes('administrative permissions')) {
    return new EmbeddedPostgresError(
      'PostgreSQL does not run with administrative permissions: use an ordinary terminal',
    )
  }
  if (PORT_TAKEN.test(output)) {
    return new EmbeddedPostgresError(
      `Port ${port} on 127.0.0.1 is taken: stop what listens there, or choose another port`,
      { code: 'port_taken' },
    )
  }
  if (output.includes('pre-existing shared memory block')) {
    return new EmbeddedPostgresError(
      `${dataDir} is still in use by the processes of a server that was killed: end those first`,
      { code: 'killed_server_ending' },
    )
  }
  if (output.includes('is another postmaster') || output.includes('Is another postmaster')) {
    return new EmbeddedPostgresError(`${dataDir} is in use by another running instance: stop that one first`, {
      code: 'data_dir_in_use',
    })
  }
  const lastLines = output.trim().split('\n').slice(-5).join(' · ')
  return new EmbeddedPostgresError(`PostgreSQL did not start: ${lastLines || 'it wrote nothing'}`)
}
