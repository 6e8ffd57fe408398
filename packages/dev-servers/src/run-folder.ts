import { rmSync } from 'node:fs'
import { chmod, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isAlive } from './is-alive.ts'

/** Followed by the id of the process that made the folder. */
const PREFIX = 'workflow-service-test-'
const folders: string[] = []

/**
 * Creates a temporary folder for a server's data. It is removed when this process exits by itself;
 * `removeDeadRunFolders` removes it after a kill.
 */
export async function makeRunFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), `${PREFIX}${process.pid}-`))
  // When this process is root, PostgreSQL runs as another user and must reach its own, closed folder inside this one.
  await chmod(folder, 0o711)
  if (folders.push(folder) === 1) process.once('exit', removeRunFolders)
  return folder
}

function removeRunFolders(): void {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
}

/** Removes the run folders of processes that no longer exist. */
export async function removeDeadRunFolders(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const pid = name.startsWith(PREFIX) ? Number.parseInt(name.slice(PREFIX.length), 10) : 0
    if (pid > 0 && !isAlive(pid)) await rm(join(tmpdir(), name), { recursive: true, force: true }).catch(() => {})
  }
}
