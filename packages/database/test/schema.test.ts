import { readFileSync } from 'node:fs'
import { glob, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import type { Connection, FieldDef, Submittable } from 'pg'
import { statements } from '../src/index.ts'

const database = useTestDatabase()

/** Prepares a statement and reads what it would return, without running it. */
class Description implements Submittable {
  fields: readonly FieldDef[] = []
  readonly done = Promise.withResolvers<void>()
  readonly #text: string

  constructor(text: string) {
    this.#text = text
  }

  submit(connection: Connection): void {
    connection.parse({ name: '', text: this.#text, types: [] }, true)
    connection.describe({ type: 'S', name: '' }, true)
    connection.sync()
  }

  handleRowDescription({ fields }: { fields: FieldDef[] }): void {
    this.fields = fields
  }

  handleError(error: Error): void {
    this.done.reject(error)
  }

  handleReadyForQuery(): void {
    this.done.resolve()
  }
}

test('every statement can be prepared and returns the columns that its declaration names', async () => {
  const client = await database.db.pool.connect()
  try {
    for (const { name, text, columns } of statements.values()) {
      const description = new Description(text)
      client.query(description)
      await description.done.promise.catch((error: unknown) => {
        throw new Error(`${name} cannot be prepared`, { cause: error })
      })
      const { rows } = await client.query<{ types: string[] }>(
        'SELECT array(SELECT format_type(oid, NULL) FROM unnest($1::oid[]) WITH ORDINALITY AS field (oid, n) ORDER BY n) AS types',
        [description.fields.map(({ dataTypeID }) => dataTypeID)],
      )
      const returned = description.fields.map((field, index) => [field.name, rows[0]?.types[index]])
      const declared = Object.entries(columns).map(([column, { type }]) => [column, type])
      expect({ name, columns: Object.fromEntries(returned) }).toEqual({ name, columns: Object.fromEntries(declared) })
    }
    expect(statements.size).toBeGreaterThan(40)
  } finally {
    client.release()
  }
})

test('no statement needs a newer PostgreSQL than 15, which the tests do not run', async () => {
  // Of 16 to 18. A list, because every other check runs on the newest.
  const newer =
    /\b(?:json_(?:object|array|arrayagg|objectagg|scalar|serialize|table|value|query|exists)|any_value|date_add|date_subtract|array_(?:sample|shuffle|sort|reverse)|pg_input_\w+|uuidv7|casefold)\s*\(|\bIS\s+(?:NOT\s+)?JSON\b|\bRETURNING\s+(?:old|new)\b/
  const folder = join(import.meta.dirname, '..')
  const found: string[] = []
  for await (const file of glob('{src,migrations}/**/*.{ts,sql}', { cwd: folder })) {
    if (newer.test(readFileSync(join(folder, file), 'utf8'))) found.push(file)
  }
  expect(found).toEqual([])
})

// prisma/schema.prisma: the generated client keeps neither native types nor what is optional, and Prisma's own schema
// parser would be a download, so the schema's lines are read here: they are regular.

/** Prisma's types without `@db.…`, as its documentation of the PostgreSQL connector maps them. */
const DEFAULT_TYPES: Record<string, string> = {
  String: 'text',
  Boolean: 'bool',
  Int: 'int4',
  BigInt: 'int8',
  Float: 'float8',
  DateTime: 'timestamp(3)',
  Json: 'jsonb',
  Bytes: 'bytea',
}
const FIELD = /^ +(\w+) +(\w+)(\[\]|\?)?(?: +(.*))?$/gm
const KEY = /^ *@@(?:id|unique)\(\[([^\]]+)\]/gm

/** Returns a line for each column, such as `users.role text null`, and for each key: `users (id, organization_id)`. */
function readSchema(schema: string): string[] {
  const models = [...schema.matchAll(/^model (\w+) \{\n([\s\S]*?)^\}/gm)]
  const names = new Set(models.map(([, name]) => name))
  return models.flatMap(([, , body = '']) => {
    const table = /@@map\("(\w+)"\)/.exec(body)?.[1]
    const fields = [...body.matchAll(FIELD)].filter(([, , type]) => !names.has(type))
    const columnOf = new Map(
      fields.map(([, name = '', , , attributes = '']) => [name, /@map\("(\w+)"\)/.exec(attributes)?.[1] ?? name]),
    )
    const toKey = (of: readonly string[]) => {
      const columns = of.map((name) => columnOf.get(name.trim()) ?? `no field ${name}`)
      return `${table} (${columns.toSorted().join(', ')})`
    }
    return [
      ...fields.map(([, name = '', type = '', mark, attributes = '']) => {
        const native = /@db\.(\w+(?:\(\d+\))?)/.exec(attributes)?.[1]?.toLowerCase() ?? DEFAULT_TYPES[type]
        const rest = [mark === '?' && ' null', attributes.includes('@default(') && ' default'].filter(Boolean).join('')
        return `${table}.${columnOf.get(name)} ${native}${mark === '[]' ? mark : ''}${rest}`
      }),
      ...fields.filter(([line]) => /@(id|unique)\b/.test(line)).map(([, name = '']) => toKey([name])),
      ...[...body.matchAll(KEY)].map(([, of = '']) => toKey(of.split(','))),
    ]
  })
}

/** The same of the database. Keys are unconditional unique indexes; those of expressions have no columns to name. */
const READ_DATABASE = `
  SELECT concat(table_name, '.', column_name, ' ', regexp_replace(udt_name, '^_(.*)$', '\\1[]'),
      CASE WHEN udt_name <> 'date' THEN '(' || datetime_precision || ')' END,
      CASE is_nullable WHEN 'YES' THEN ' null' END, CASE WHEN column_default IS NOT NULL THEN ' default' END) AS line,
    table_name AS table, true AS "isColumn"
  FROM information_schema.columns WHERE table_schema = 'public'
  UNION ALL
  SELECT concat(tables.relname, ' (', string_agg(attname, ', ' ORDER BY attname), ')'), tables.relname, false
  FROM pg_index JOIN pg_class AS tables ON tables.oid = indrelid
    JOIN pg_attribute ON attrelid = tables.oid AND attnum = ANY (indkey)
  WHERE indisunique AND indpred IS NULL AND indexprs IS NULL AND relnamespace = 'public'::regnamespace
  GROUP BY indexrelid, tables.relname`

test('the Prisma schema has the columns of its tables in the migrated database, and keys of them', async () => {
  const schema = readSchema(await readFile(new URL('../prisma/schema.prisma', import.meta.url), 'utf8'))
  const { rows } = await database.db.pool.query<{ line: string; table: string; isColumn: boolean }>(READ_DATABASE)
  const stored = new Set(rows.map(({ line }) => line))
  expect(schema.filter((line) => !stored.has(line))).toEqual([])
  const tables = new Set(schema.map((line) => line.split(/\W/)[0]))
  const columns = rows.filter(({ table, isColumn }) => isColumn && tables.has(table)).map(({ line }) => line)
  expect(columns.filter((line) => !schema.includes(line))).toEqual([])
  expect(columns.length).toBeGreaterThan(100)
})

test('no index of starts has a column that the beginning or the end of each run changes, also not in its condition', async () => {
  const { rows } = await database.db.pool.query(
    `SELECT indexname FROM pg_indexes
     WHERE tablename = 'starts' AND indexdef ~ '\\m(status|attempts|started_at|finished_at)\\M'`,
  )
  expect(rows).toEqual([])
})
