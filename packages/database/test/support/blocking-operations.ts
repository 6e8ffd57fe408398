/** An operation that a migration must not contain. */
interface Rule {
  readonly pattern: RegExp
  /** What is wrong, and what to do. */
  readonly message: string
  /** Whether the rule is only about tables that existed before the migration; the pattern then captures the table. */
  readonly isForOldTables?: boolean
}

const OLD = { isForOldTables: true }
const RULES: readonly Rule[] = [
  {
    pattern: /\bRENAME\b|\bDROP\s+(TABLE|COLUMN|VIEW|FUNCTION|TRIGGER|TYPE|SCHEMA)\b/i,
    message:
      'the previous release still uses it during the upgrade. Add the new one now, remove it in the release after',
  },
  {
    pattern:
      /\bALTER\s+(COLUMN\s+)?\w+\s+(SET\s+DATA\s+)?TYPE\b|\b(LOCK\s+TABLE|TRUNCATE|VACUUM\s+FULL|CLUSTER|REINDEX)\b/i,
    message: 'it rewrites or locks the table',
  },
  { pattern: /\bSET\s+NOT\s+NULL\b/i, message: 'the previous release may write NULL, and the scan locks the table' },
  {
    pattern:
      /\bALTER\s+TABLE\s+(\w+)[^;]*\bADD\s+(COLUMN\s+)?(?!CONSTRAINT)\w+\s+(?:(?!\bDEFAULT\b|,\s*ADD\b)[^;])*\bNOT\s+NULL\b(?!\s+(DEFAULT|GENERATED))/i,
    message: 'a column that is NOT NULL without a DEFAULT: the previous release does not write it',
    ...OLD,
  },
  {
    pattern: /\bALTER\s+TABLE\s+(\w+)[^;]*\bDEFAULT\s+(gen_random_uuid|random|clock_timestamp|nextval)\b/i,
    message: 'a default that differs by row rewrites the table. Add the column first, the default after',
    ...OLD,
  },
  {
    pattern: /\bALTER\s+TABLE\s+(\w+)[^;]*\bADD\s+(CONSTRAINT\s+\w+\s+)?(CHECK|FOREIGN\s+KEY)\b(?!.*\bNOT\s+VALID\b)/is,
    message: 'a constraint without NOT VALID: the scan locks the table',
    ...OLD,
  },
  {
    pattern:
      /\bCREATE\s+(?:UNIQUE\s+)?INDEX\s+(?!CONCURRENTLY)(?:IF\s+NOT\s+EXISTS\s+)?\w+\s+ON\s+(\w+)|\bALTER\s+TABLE\s+(\w+)[^;]*\bADD\s+(?:CONSTRAINT\s+\w+\s+)?(?:UNIQUE|PRIMARY\s+KEY|EXCLUDE)\b/i,
    message: 'an index: writers of the table wait while it is built',
    ...OLD,
  },
  {
    pattern: /^\s*(?:UPDATE|DELETE\s+FROM)\s+(\w+)/i,
    message: 'rows are written in one transaction. Do it in batches after the upgrade',
    ...OLD,
  },
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
      const [found, ...groups] = pattern.exec(statement) ?? []
      const table = groups.find(Boolean)
      if (found === undefined || (isForOldTables && created.has(table))) return []
      return [`${statement.replaceAll(/\s+/g, ' ').slice(0, 80)}: ${message}.`]
    })
  })
}
