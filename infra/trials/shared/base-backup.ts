import { execFile } from 'node:child_process'
import { appendFile, chown, cp, mkdir, readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Client } from 'pg'

const execute = promisify(execFile)

/** A copy of a running server's data folder. */
export interface BaseBackup {
  readonly folder: string
  /** Just before the backup ended, in ms since 1970. */
  readonly endedAt: number
}

/**
 * Takes a base backup by PostgreSQL's low-level API, as pg_basebackup does: the embedded PostgreSQL has no
 * pg_basebackup. Files may change or vanish while they are copied; the WAL of the archive repairs them.
 */
export async function takeBaseBackup(adminUrl: string, dataDir: string, folder: string): Promise<BaseBackup> {
  const client = new Client({ connectionString: adminUrl })
  await client.connect()
  try {
    await client.query(`SELECT pg_backup_start('trial', true)`)
    // cp exits with 1 when a file vanished.
    await execute('cp', ['--archive', dataDir, folder]).catch(() => {})
    const endedAt = Date.now()
    const { rows } = await client.query<{ labelfile: string }>('SELECT labelfile FROM pg_backup_stop(true)')
    // A backup must not contain files of the running server.
    const wal = (await readdir(join(folder, 'pg_wal'))).map((name) => join('pg_wal', name))
    for (const name of ['postmaster.pid', 'postmaster.opts', ...wal])
      await rm(join(folder, name), { recursive: true, force: true })
    await writeAsServer(join(folder, 'backup_label'), rows[0]?.labelfile ?? '', dataDir)
    return { folder, endedAt }
  } finally {
    await client.end()
  }
}

/** Copies the WAL that was not archived before the server was lost. */
export async function saveLastWal(dataDir: string, archive: string): Promise<void> {
  for (const entry of await readdir(join(dataDir, 'pg_wal'), { withFileTypes: true })) {
    if (!entry.isFile()) continue
    await cp(join(dataDir, 'pg_wal', entry.name), join(archive, entry.name), { force: false, preserveTimestamps: true })
  }
}

/**
 * Replaces the data folder by the backup. The next start recovers it with the server's `restore_command`: to the
 * backup's end, or as far as the archive reaches.
 */
export async function restoreBaseBackup(
  backup: BaseBackup,
  dataDir: string,
  until: 'end of the backup' | 'end of the WAL',
): Promise<void> {
  await rm(dataDir, { recursive: true })
  await rename(backup.folder, dataDir)
  await writeAsServer(join(dataDir, 'recovery.signal'), '', dataDir)
  if (until === 'end of the backup') {
    await appendFile(
      join(dataDir, 'postgresql.auto.conf'),
      `recovery_target = 'immediate'\nrecovery_target_action = 'promote'\n`,
    )
  }
}

/** Creates a folder that the server's user may write. */
export async function makeServerFolder(path: string, dataDir: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o700 })
  await giveToServer(path, dataDir)
}

/** Writes a file that belongs to the server's user. */
export async function writeAsServer(path: string, text: string, dataDir: string): Promise<void> {
  await writeFile(path, text, { mode: 0o600 })
  await giveToServer(path, dataDir)
}

async function giveToServer(path: string, dataDir: string): Promise<void> {
  const { uid, gid } = await stat(dataDir)
  await chown(path, uid, gid)
}
