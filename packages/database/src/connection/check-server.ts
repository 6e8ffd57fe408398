import { escapeIdentifier } from 'pg'
import type { Db } from './client.ts'

const OLDEST_VERSION = 150_000

interface ServerRow {
  version: string
  number: string
  encoding: string
  role: string
  database: string
  may_create: boolean | null
  is_read_only: boolean
}

/** Why this server or role cannot be migrated, as a sentence with advice; undefined when it can. */
export async function checkServer(db: Db): Promise<string | undefined> {
  const found = await db.pool.query<ServerRow>(
    `SELECT current_setting('server_version') AS version, current_setting('server_version_num') AS number,
       current_setting('server_encoding') AS encoding, current_user AS role, current_database() AS database,
       has_schema_privilege(to_regnamespace('public'), 'CREATE') AS may_create,
       current_setting('transaction_read_only')::boolean AS is_read_only`,
  )
  const [server] = found.rows
  if (!server) return undefined
  const { version, number, encoding, may_create: mayCreate } = server
  if (Number(number) < OLDEST_VERSION) return `PostgreSQL ${version} is too old: version 15 or newer is needed.`
  if (server.is_read_only)
    return 'PostgreSQL accepts no writes here: name the primary in DATABASE_URL, not a standby, or unset default_transaction_read_only.'
  if (encoding !== 'UTF8') {
    return `The database has the encoding ${encoding}, which cannot store every text: create one with createdb --encoding=UTF8 --template=template0 NAME.`
  }
  if (mayCreate) return undefined
  const [role, database] = [escapeIdentifier(server.role), escapeIdentifier(server.database)]
  return mayCreate === null
    ? `The database has no schema "public": as its owner, run CREATE SCHEMA public.`
    : `The role ${role} may not create tables here: as a superuser, run ALTER DATABASE ${database} OWNER TO ${role}; or, in that database, GRANT CREATE ON SCHEMA public TO ${role}.`
}
