import { isDatabaseUnavailable, ManifestError } from '@workflow-service/database'
import { SettingsError } from '@workflow-service/service-kit'
import type { CliConfig } from './config.ts'

/** What `wf` was asked for and does not do: the message says why and what to do. Exit status 1. */
export class Refusal extends Error {
  override name = 'Refusal'
  /** More for `--json`. */
  readonly extra: Record<string, unknown>

  constructor(message: string, extra: Record<string, unknown> = {}, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.extra = extra
  }
}

/** PostgreSQL's refusals that the user can do something about, by SQLSTATE. */
const SQLSTATE_ADVICE: Record<string, string> = {
  '28P01': 'the password in DATABASE_URL is wrong.',
  '28000': 'the role in DATABASE_URL may not log in.',
  '3D000': 'the database in DATABASE_URL does not exist: create it first (createdb NAME).',
  '42P01': 'the tables are missing: run wf migrate.',
  '42703': 'the tables are of an older version: run wf migrate.',
  '42501':
    'the role in DATABASE_URL lacks a right. It must own the database or the schema "public": as a superuser, run ALTER DATABASE name OWNER TO role.',
}

/** The error as a refusal with advice; undefined when it is none that anybody foresaw. */
export function toRefusal(error: unknown, config: CliConfig): Refusal | undefined {
  if (error instanceof Refusal) return error
  if (error instanceof SettingsError) {
    const hint = 'wf takes the settings of the services. While npm start runs beside it, it finds those by itself.'
    return new Refusal(`${error.message}\n${hint}`, { faults: error.errors }, error)
  }
  if (error instanceof ManifestError) return new Refusal(error.message, { faults: error.faults }, error)
  const sqlstate = sqlstateOf(error)
  const advice = sqlstate === undefined ? undefined : SQLSTATE_ADVICE[sqlstate]
  if (advice !== undefined)
    return new Refusal(`${placeOf(config)}: ${advice} (${messageOf(error)})`, { sqlstate }, error)
  if (isDatabaseUnavailable(error)) {
    const hint = config.isLocal
      ? 'Start the local stack with npm start.'
      : 'Is it running? DATABASE_URL says where it is.'
    return new Refusal(`${placeOf(config)} does not answer (${messageOf(error)}). ${hint}`, {}, error)
  }
  return undefined
}

/** SQLSTATE, also through Prisma, which wraps what the driver threw. */
function sqlstateOf(error: unknown): string | undefined {
  for (let seen = error, depth = 0; typeof seen === 'object' && seen !== null && depth < 6; depth += 1) {
    const { code, originalCode, cause, meta } = seen as Record<string, unknown>
    const found = [originalCode, code].find((value) => typeof value === 'string' && value in SQLSTATE_ADVICE)
    if (typeof found === 'string') return found
    seen = cause ?? (meta as { driverAdapterError?: unknown } | undefined)?.driverAdapterError
  }
  return undefined
}

function messageOf(error: unknown): string {
  const { message, code, errors } = error as { message?: string; code?: string; errors?: unknown[] }
  const [first] = errors ?? []
  // Prisma puts its advertising before what happened, which stands on the last line.
  const said = message?.trim().split('\n').at(-1)
  return said || code || (first === undefined ? String(error) : messageOf(first))
}

/** Where the database is, without the password. */
function placeOf(config: CliConfig): string {
  const { hostname, port, pathname, username } = new URL(config.databaseUrl())
  return `PostgreSQL at ${username}@${hostname}:${port || '5432'}${pathname}`
}
