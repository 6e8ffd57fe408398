import { DatabaseError } from 'pg'

/** SQLSTATE classes and codes that mean "try again later": connection, resources, shutdown, read-only, time-out. */
const AWAY_SQLSTATES = /^(08|53|57P|57014|55P03|25006|25P03|25P04|40001|40P01)/

/** Errors of the socket, and the codes with which Prisma wraps the same. */
const AWAY_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'P1001',
  'P1002',
  'P1008',
  'P1011',
  'P1017',
  'P2024',
  'P2028',
  'P2037',
])

/** What pg says without a code. */
const AWAY_MESSAGES =
  /^(Query read timeout|timeout e(xceeded|xpired)|Connection terminated|Client was closed|Client has encountered a connection error|connection is closed|Cannot use a pool after calling end)/i

/**
 * Whether the error says that the database cannot answer now, rather than that a statement is wrong: the caller may try
 * again, and an API answers 503. Looks through causes, as Prisma wraps what the driver threw.
 */
export function isDatabaseUnavailable(error: unknown): boolean {
  for (let seen: unknown = error, depth = 0; seen !== undefined && seen !== null && depth < 6; depth += 1) {
    if (typeof seen !== 'object') return false
    const { code, originalCode, message, cause } = seen as Record<string, unknown>
    for (const candidate of [code, originalCode]) {
      if (typeof candidate !== 'string') continue
      if (AWAY_CODES.has(candidate)) return true
      if ((seen instanceof DatabaseError || candidate === originalCode) && AWAY_SQLSTATES.test(candidate)) return true
    }
    if (typeof message === 'string' && AWAY_MESSAGES.test(message)) return true
    if (seen instanceof AggregateError && seen.errors.some(isDatabaseUnavailable)) return true
    const meta = (seen as { meta?: { driverAdapterError?: unknown } }).meta
    seen = cause ?? meta?.driverAdapterError
  }
  return false
}

/**
 * Whether a statement was refused for what it holds, so that nothing of it was done: one bad item of a batch spoils all of
 * it, and each may be tried alone.
 */
export function isStatementError(error: unknown): boolean {
  return !isDatabaseUnavailable(error)
}
