import type { Database } from './client.ts'

const OLDEST_VERSION = 150_000

/** What makes this server unfit for the schema, in words with advice; undefined when nothing does. */
export async function checkServer(db: Pick<Database, 'pool'>): Promise<string | undefined> {
  const found = await db.pool.query<{ version: string; number: string; encoding: string }>(
    `SELECT current_setting('server_version') AS version, current_setting('server_version_num') AS number,
       current_setting('server_encoding') AS encoding`,
  )
  const [server] = found.rows
  if (!server) return undefined
  if (Number(server.number) < OLDEST_VERSION)
    return `PostgreSQL ${server.version} is too old: version 15 or newer is needed.`
  if (server.encoding === 'UTF8') return undefined
  return `The database has the encoding ${server.encoding}, which cannot hold every text: make one with createdb --encoding=UTF8 --template=template0 NAME.`
}
