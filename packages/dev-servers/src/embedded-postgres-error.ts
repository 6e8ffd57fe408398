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

/** Explains why PostgreSQL or initdb ended, from what they have written. */
export function toStartError(output: string, dataDir: string, port?: number): EmbeddedPostgresError {
  const explanations: [RegExp, message: string, code?: EmbeddedPostgresError['code']][] = [
    [
      /could not create (?:shared memory|semaphores)/,
      'The system allows no further shared memory or semaphores: stop other PostgreSQL servers, such as those of tests, or raise its limit',
    ],
    [
      /No space left on device|Disk quota exceeded|Check free disk space/,
      `No space left on the disk of ${dirname(dataDir)}: PostgreSQL needs about 100 MB there`,
    ],
    [/administrative permissions/, 'PostgreSQL does not run with administrative permissions: use an ordinary terminal'],
    [
      /could not bind .* Address already in use|could not create any TCP\/IP sockets/s,
      `Port ${port} on 127.0.0.1 is taken: stop what listens there, or choose another port`,
      'port_taken',
    ],
    [
      /pre-existing shared memory block/,
      `${dataDir} is still in use by the processes of a server that was killed: end those first`,
      'killed_server_ending',
    ],
    [
      /[iI]s another postmaster/,
      `${dataDir} is in use by another running instance: stop that one first`,
      'data_dir_in_use',
    ],
  ]
  const [, known, code] = explanations.find(([sign]) => sign.test(output)) ?? []
  const lastLines = output.trim().split('\n').slice(-5).join(' · ')
  return new EmbeddedPostgresError(known ?? `PostgreSQL did not start: ${lastLines || 'it wrote nothing'}`, { code })
}
