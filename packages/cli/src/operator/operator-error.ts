import { splitHosts } from '@workflow-service/contract'
import { isDatabaseUnavailable, MigrationBlockedError } from '@workflow-service/database'
import { ManifestError } from '@workflow-service/database/manifest'
import { SettingsError } from '@workflow-service/service-kit'
import { InternalCallError } from '@workflow-service/service-kit/internal-client'
import { CliError } from '../cli-error.ts'
import type { CliConfig } from './config.ts'

/** What the user can do about an error of PostgreSQL, by SQLSTATE. */
const SQLSTATE_ADVICE: Record<string, string> = {
  '28P01': 'the password in DATABASE_URL is wrong.',
  '28000': 'the role in DATABASE_URL is not allowed to log in.',
  '25006':
    'it accepts no writes. Name the primary in DATABASE_URL, not a standby, or unset default_transaction_read_only.',
  '3D000': 'the database in DATABASE_URL does not exist. Create it first: createdb NAME.',
  '42P01': 'the tables are missing. Run wf migrate.',
  '42703': 'the tables are of an older version. Run wf migrate.',
  '42501':
    'the role in DATABASE_URL lacks a privilege. It must own the database or the schema "public": as a superuser, run ALTER DATABASE name OWNER TO role.',
}

const LOCAL_STACK_HINT =
  'wf reads the same settings as the services from the environment. Beside a running npm start it needs none: it finds them in .local/env.'

/** Converts an error into one with advice; undefined if it is an unexpected error. */
export function toOperatorError(error: unknown, config: CliConfig): CliError | undefined {
  if (error instanceof SettingsError) {
    const hint = config.isLocal ? '' : `\n${LOCAL_STACK_HINT}`
    return new CliError(`${error.message}${hint}`, { faults: error.errors }, error)
  }
  if (error instanceof InternalCallError) return new CliError(error.message, { ...error.body }, error)
  if (error instanceof ManifestError) return new CliError(error.message, { faults: error.violations }, error)
  if (error instanceof MigrationBlockedError) return new CliError(error.message, {}, error)
  const sqlstate = findSqlstate(error)
  const advice = sqlstate === undefined ? undefined : SQLSTATE_ADVICE[sqlstate]
  if (advice !== undefined) {
    return new CliError(`${describeDatabase(config)}: ${advice} (${describeCause(error)})`, { sqlstate }, error)
  }
  if (isDatabaseUnavailable(error)) {
    const hint = config.isLocal
      ? 'Start the local stack with npm start.'
      : 'Check that it is running and that DATABASE_URL is right.'
    return new CliError(`${describeDatabase(config)} does not answer (${describeCause(error)}). ${hint}`, {}, error)
  }
  return undefined
}

/** Looks through the causes too, because Prisma wraps the driver's error. */
function findSqlstate(error: unknown): string | undefined {
  for (let current = error, depth = 0; typeof current === 'object' && current !== null && depth < 6; depth += 1) {
    const { code, originalCode, cause, meta } = current as Record<string, unknown>
    const found = [originalCode, code].find((value) => typeof value === 'string' && value in SQLSTATE_ADVICE)
    if (typeof found === 'string') return found
    current = cause ?? (meta as { driverAdapterError?: unknown } | undefined)?.driverAdapterError
  }
  return undefined
}

function describeCause(error: unknown): string {
  const { message, code, errors } = error as { message?: string; code?: string; errors?: unknown[] }
  const [first] = errors ?? []
  // Prisma's messages have the cause on their last line.
  const lastLine = message?.trim().split('\n').at(-1)
  return lastLine || code || (first === undefined ? String(error) : describeCause(first))
}

/** Names the database without its password. */
function describeDatabase(config: CliConfig): string {
  const urls = splitHosts(config.databaseUrl()).map((url) => new URL(url))
  const hosts = urls.map(({ hostname, port }) => `${hostname}:${port || '5432'}`)
  const { pathname, username } = urls[0]!
  return `PostgreSQL at ${username && `${username}@`}${hosts.join(',')}${pathname}`
}
