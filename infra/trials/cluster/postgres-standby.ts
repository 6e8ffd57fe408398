import { appendFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { takeBaseBackup, writeAsServer } from '../shared/base-backup.ts'
import { type EmbeddedPostgres, freePort, makeRunFolder, startEmbeddedPostgres } from '@workflow-service/dev-servers'
import { type PrivatePostgres, waitUntil } from '@workflow-service/testkit'
import { Client } from 'pg'

/** What the primary needs at its start, beside the defaults. */
export const PRIMARY_SETTINGS = { wal_keep_size: '512MB' }

const NAME = 'standby'

/** Starts a standby and makes every commit of the primary wait for it. */
export async function startStandby(primary: PrivatePostgres) {
  const folder = await makeRunFolder()
  const dataDir = join(folder, 'data')
  const { username, password, port } = new URL(primary.adminUrl)
  await appendFile(join(primary.dataDir, 'pg_hba.conf'), 'host replication all 127.0.0.1/32 scram-sha-256\n')
  const admin = new Client({ connectionString: primary.adminUrl })
  await admin.connect()
  let standby: EmbeddedPostgres | undefined
  try {
    await admin.query('SELECT pg_reload_conf()')
    await takeBaseBackup(primary.adminUrl, primary.dataDir, dataDir)
    await writeAsServer(join(dataDir, 'standby.signal'), '', primary.dataDir)
    await appendFile(
      join(dataDir, 'postgresql.auto.conf'),
      `primary_conninfo = 'host=127.0.0.1 port=${port} user=${username} password=${password} application_name=${NAME}'\n`,
    )
    const standbyPort = await freePort()
    standby = await startEmbeddedPostgres({ dataDir, port: standbyPort, settings: { max_connections: 300 } })
    await admin.query(`ALTER SYSTEM SET synchronous_standby_names = '${NAME}'`)
    await admin.query('SELECT pg_reload_conf()')
    await waitUntil(
      async () => {
        const { rows } = await admin.query(`SELECT FROM pg_stat_replication WHERE sync_state = 'sync'`)
        return rows.length === 1
      },
      { timeoutMs: 60_000, message: () => 'the standby to follow synchronously' },
    )
  } finally {
    await admin.end()
  }
  const server = standby
  return {
    /** The application's database on both servers. */
    url: primary.url.replace(`:${port}/`, `:${port},127.0.0.1:${standby.port}/`),
    async promote() {
      const client = new Client({ connectionString: server.adminUrl })
      await client.connect()
      await client.query('SELECT pg_promote()')
      await client.end()
    },
    async stop() {
      await server.stop('immediate')
      await rm(folder, { recursive: true, force: true })
    },
  }
}
