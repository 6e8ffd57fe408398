/** An operation that a migration must not contain. */
interface Rule {
  readonly pattern: RegExp
  /** What is wrong, and what to do. */
  readonly message: string
  /** Whether the rule is only about tables that existed before the migration; the pattern then captures the table. */
  readonly isForOldTables?: boolean
}

const STILL_READ = 'the previous release still uses it during the upgrade. Remove it in the release after'
const RULES: readonly Rule[] = [
  { pattern: /\bRENAME\b/i, message: `a rename: ${STILL_READ}, and add the new name beside it now` },
  { pattern: /\bDROP\s+(TABLE|COLUMN|VIEW|FUNCTION|TRIGGER|TYPE|SCHEMA)\b/i, message: `a removal: ${STILL_READ}` },
  {
    pattern: /\bALTER\s+(COLUMN\s+)?\w+\s+(SET\s+DATA\s+)?TYPE\b/i,
    message: 'a new type rewrites the table under a lock. Add a column',
  },
  {
    pattern: /\bSET\s+NOT\s+NULL\b/i,
    message: 'the previous release may write NULL, and the scan locks the table. Keep it nullable',
  },
  {
    pattern:
      /\bALTER\s+TABLE\s+(\w+)[^;]*\bADD\s+(COLUMN\s+)?(?!CONSTRAINT)\w+\s+(?:(?!\bDEFAULT\b|,\s*ADD\b)[^;])*\bNOT\s+NULL\b(?!\s+(DEFAULT|GENERATED))/i,
    message: 'a column that is NOT NULL without a DEFAULT: the previous release does not write it',
    isForOldTables: true,
  },
  {
    pattern: /\bALTER\s+TABLE\s+(\w+)[^;]*\bDEFAULT\s+(gen_random_uuid|random|clock_timestamp|nextval)\b/i,
    message: 'a default that differs by row rewrites the table under a lock. Add the column first, the default after',
    isForOldTables: true,
  },
  {
    pattern: /\bALTER\s+TABLE\s+(\w+)[^;]*\bADD\s+(CONSTRAINT\s+\w+\s+)?(CHECK|FOREIGN\s+KEY)\b(?!.*\bNOT\s+VALID\b)/is,
    message: 'a constraint without NOT VALID: the scan locks the table',
    isForOldTables: true,
  },
  {
    pattern: /\bALTER\s+TABLE\s+(\w+)[^;]*\bADD\s+(CONSTRAINT\s+\w+\s+)?(UNIQUE|PRIMARY\s+KEY|EXCLUDE)\b/i,
    message: 'a constraint that builds an index: writers of the table wait meanwhile',
    isForOldTables: true,
  },
  {
    pattern: /\bCREATE\s+(?:UNIQUE\s+)?INDEX\s+(?!CONCURRENTLY)(?:IF\s+NOT\s+EXISTS\s+)?\w+\s+ON\s+(\w+)/i,
    message: 'an index: writers of the table wait while it is built',
    isForOldTables: true,
  },
  {
    pattern: /^\s*UPDATE\s+(\w+)/i,
    message: 'rows are changed in one transaction. Do it in batches after the upgrade',
    isForOldTables: true,
  },
  {
    pattern: /^\s*DELETE\s+FROM\s+(\w+)/i,
    message: 'rows are deleted in one transaction. Do it in batches after the upgrade',
    isForOldTables: true,
  },
  { pattern: /\b(LOCK\s+TABLE|TRUNCATE|VACUUM\s+FULL|CLUSTER|REINDEX)\b/i, message: 'it locks the table' },
]

/**
 * Finds the statements of a migration that would stop the services of the previous release, or make them wait: each as
 * a sentence. A statement below a comment that begins with `-- safe:` and says why is left out.
 */
export function findBlockingOperations(sql: string): string[] {
  const withoutBodies = sql.replaceAll(/\$(\w*)\$.*?\$\1\$/gs, "''")
  const created = new Set([...withoutBodies.matchAll(/\bCREATE\s+TABLE\s+(\w+)/gi)].map(([, table]) => table))
  return withoutBodies.split(';').flatMap((text) => {
    if (/^\s*-- safe: \S/m.test(text)) return []
    const statement = text.replaceAll(/--.*$/gm, '').trim()
    return RULES.flatMap(({ pattern, message, isForOldTables }) => {
      const [found, table] = pattern.exec(statement) ?? []
      if (found === undefined || (isForOldTables && created.has(table))) return []
      return [`${statement.replaceAll(/\s+/g, ' ').slice(0, 80)}: ${message}.`]
    })
  })
}
