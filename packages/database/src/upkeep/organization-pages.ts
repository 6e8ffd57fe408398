import { type Connection, NIL_UUID } from '../connection/index.ts'

const PAGE_SIZE = 500

/** Yields the ids of all organizations. */
export async function* allOrganizations(db: Connection): AsyncGenerator<string> {
  for await (const ids of organizationPages(db)) yield* ids
}

/** Yields the ids of all organizations, 500 at a time. The rows of deleted ones are deleted with them. */
export async function* organizationPages(db: Connection): AsyncGenerator<readonly string[]> {
  for (let after: string | undefined = NIL_UUID; after !== undefined;) {
    const { rows }: { rows: { id: string }[] } = await db.pool.query(
      'SELECT id FROM organizations WHERE id > $1 AND deleted_at IS NULL ORDER BY id LIMIT $2',
      [after, PAGE_SIZE],
    )
    yield rows.map(({ id }) => id)
    after = rows.length < PAGE_SIZE ? undefined : rows.at(-1)?.id
  }
}
