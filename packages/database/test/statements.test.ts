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
