import { DatabaseError } from 'pg'

/**
 * SQLSTATE classes and codes that mean "try again later": connection, resources, shutdown, read-only, time-out; those
 * with which a server refuses to connect (28, 3D, 55000), as while a password is changed; errors of its disk (58).
 */
const UNAVAILABLE_SQLSTATES = /^(08|28|3D|53|55000|55P03|57P|57014|58|25006|25P03|25P04|40001|40P01)/

/** Socket errors, a process without free file descriptors, and the codes with which Prisma wraps them. */
const UNAVAILABLE_CODES =
  /^(ECONN(REFUSED|RESET|ABORTED)|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|EMFILE|ENFILE|P1001|P1002|P1008|P1011|P1017|P2024|P2028|P2037)$/

/** What Prisma's adapter makes of socket errors. Only the COMMIT of a transaction rejects with it as it is. */
const UNAVAILABLE_KINDS = /^(ConnectionClosed|DatabaseNotReachable|SocketTimeout)$/

/** Error messages of pg that have no code. */
const UNAVAILABLE_MESSAGES =
  /^(Query read timeout|timeout e(xceeded|xpired)|Connection terminated|Client was closed|Client has encountered a connection error|connection is closed|Cannot use a pool after calling end)/i

const failuresToConnect = new WeakSet<object>()

/**
 * Marks the error with which connecting failed: each, such as a certificate that has expired, means that the database
 * is unavailable. Without an error, does nothing.
 */
export function markUnavailable<Failure extends Error | undefined>(error: Failure): Failure {
  if (error) failuresToConnect.add(error)
  return error
}

/**
 * Whether the error means that the database cannot answer now, and not that a statement is wrong: the caller may retry,
 * and an API answers 503. Also checks the error's causes, because Prisma wraps the driver's errors.
 */
export function isDatabaseUnavailable(error: unknown): boolean {
  for (let seen: unknown = error, depth = 0; seen !== undefined && seen !== null && depth < 6; depth += 1) {
    if (typeof seen !== 'object') return false
    if (failuresToConnect.has(seen)) return true
    const { code, originalCode, kind, message, cause } = seen as Record<string, unknown>
    if (typeof kind === 'string' && UNAVAILABLE_KINDS.test(kind)) return true
    for (const candidate of [code, originalCode]) {
      if (typeof candidate !== 'string') continue
      if (UNAVAILABLE_CODES.test(candidate)) return true
      if ((seen instanceof DatabaseError || candidate === originalCode) && UNAVAILABLE_SQLSTATES.test(candidate))
        return true
    }
    if (typeof message === 'string' && UNAVAILABLE_MESSAGES.test(message)) return true
    if (seen instanceof AggregateError && seen.errors.some(isDatabaseUnavailable)) return true
    const meta = (seen as { meta?: { driverAdapterError?: unknown } }).meta
    seen = cause ?? meta?.driverAdapterError
  }
  return false
}

/** Whether the connection did not answer a statement within `query_timeout`: it still waits for that answer. */
export function isUnanswered(error: unknown): error is Error {
  return error instanceof Error && error.message === 'Query read timeout'
}

/**
 * Whether the connection accepts no writes. One that was opened while the database accepted none, by the default of the
 * database or the role, accepts none as long as it is open.
 */
export function isReadOnly(error: unknown): error is Error {
  const { code, meta } = (error ?? {}) as { code?: unknown; meta?: PrismaErrorMeta }
  return [code, meta?.driverAdapterError?.cause?.originalCode].includes('25006')
}

/**
 * Whether PostgreSQL cancelled a statement because it, or its wait for a lock, took too long; nothing was written. The
 * database may be overloaded, or this statement alone is slow: `Database.ping` shows which.
 */
export function isStatementTimeout(error: unknown): boolean {
  return error instanceof DatabaseError && (error.code === '57014' || error.code === '55P03')
}

/**
 * Whether PostgreSQL rejected a statement because of its values, and so wrote nothing. One bad item fails its whole
 * batch; the caller can retry each item alone.
 */
export function isStatementError(error: unknown): boolean {
  return !isDatabaseUnavailable(error)
}

/** The unique constraint for which PostgreSQL rejected a row; undefined for any other error. */
export function violatedConstraint(error: unknown): string | undefined {
  if (error instanceof DatabaseError) return error.code === '23505' ? (error.constraint ?? '') : undefined
  const { code, meta } = (error ?? {}) as { code?: unknown; meta?: PrismaErrorMeta }
  return code === 'P2002' ? (meta?.driverAdapterError?.cause?.constraint?.index ?? '') : undefined
}

/** Returns what the violation of a constraint, also of a foreign key, means. @throws the error if it is another one. */
export function kindOfViolation<Kind extends string>(error: unknown, kinds: Record<string, Kind>): { kind: Kind } {
  const constraint = error instanceof DatabaseError ? error.constraint : violatedConstraint(error)
  const { [constraint ?? '']: kind } = kinds
  if (kind === undefined) throw error
  return { kind }
}

/** Where Prisma keeps the driver's error. */
interface PrismaErrorMeta {
  readonly driverAdapterError?: {
    readonly cause?: { readonly originalCode?: string; readonly constraint?: { readonly index?: string } }
  }
}
