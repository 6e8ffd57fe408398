import { readFileSync } from 'node:fs'
import { glob } from 'node:fs/promises'
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
