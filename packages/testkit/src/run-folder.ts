import { rmSync } from 'node:fs'
import { chmod, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const prefix = 'workflow-service-test-'
const folders: string[] = []

/**
 * A temporary folder for a server's data, named after this process, so that the next run can tell which folders nobody
 * needs any more. Removed when this process exits in an orderly way.
 */
export async function makeRunFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), `${prefix}${process.pid}-`))
  // PostgreSQL runs as another user when this one is root; the data inside has closed folders of its own.
  await chmod(folder, 0o711)
  if (folders.push(folder) === 1) process.once('exit', removeRunFolders)
  return folder
}

function removeRunFolders(): void {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
}

/** Removes the folders of processes that were killed. */
export async function removeDeadRunFolders(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const pid = name.startsWith(prefix) ? Number.parseInt(name.slice(prefix.length), 10) : 0
    if (pid > 0 && !isAlive(pid)) await rm(join(tmpdir(), name), { recursive: true, force: true }).catch(() => {})
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
