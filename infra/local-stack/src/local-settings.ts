import { randomBytes } from 'node:crypto'
import { chmod, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { parseEnv } from 'node:util'
import { localEnvFile } from '@workflow-service/cli/local-folder'
import { toShownPath } from '@workflow-service/cli/terminal'
import { createApiKey } from '@workflow-service/database'
import { describeFileError, LocalStackError } from './local-stack-error.ts'

const HEADER = `# Written by npm start, read by wf. Keep it secret: it gives access to everything in this folder.
`

/**
 * Marks a folder that was created here. It ignores itself in git: it may be in the repository under any name, and holds
 * secrets.
 */
const GITIGNORE = '*\n'

/**
 * Creates the folder of data, settings and logs if it does not exist, for its owner alone, and takes from what an
 * earlier version has made the permissions that other users had. A folder that existed before keeps its own. @throws
 * LocalStackError
 */
export async function createLocalDir(localDir: string): Promise<void> {
  const marker = join(localDir, '.gitignore')
  const logs = logsDir(localDir)
  try {
    if (await createFolder(localDir)) await writeFile(marker, GITIGNORE, { mode: 0o600 })
    await createFolder(logs)
    const isOwn = (await readFile(marker, 'utf8').catch(() => '')) === GITIGNORE
    for (const folder of isOwn ? [localDir, logs] : [logs]) {
      await chmod(folder, 0o700)
      for (const entry of await readdir(folder, { withFileTypes: true })) {
        if (entry.isFile()) await chmod(join(folder, entry.name), 0o600)
      }
    }
  } catch (error) {
    throw new LocalStackError(
      `The folder ${toShownPath(localDir)} cannot be created or used: ${describeFileError(error)}.`,
      {
        cause: error,
      },
    )
  }
}

/**
 * Creates a folder, and those above it. Returns false if it exists. Node's `recursive` tries for ever where the system
 * refuses a folder with ENOENT, as below /proc.
 */
async function createFolder(path: string): Promise<boolean> {
  if (!(await isFolder(dirname(path)))) await createFolder(dirname(path))
  try {
    await mkdir(path, { mode: 0o700 })
    return true
  } catch (error) {
    if (await isFolder(path)) return false
    throw error
  }
}

async function isFolder(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isDirectory() ?? false
}

/** Reads the settings that the last start saved in `.local/env`; empty before the first start. */
export async function readSavedSettings(localDir: string): Promise<NodeJS.Dict<string>> {
  const text = await readFile(localEnvFile(localDir), 'utf8').catch(() => '')
  return parseEnv(text)
}

/** Returns the saved secrets, with new ones for those that are missing. */
export function completeSecrets(saved: NodeJS.Dict<string>) {
  return {
    INTERNAL_API_TOKEN: saved['INTERNAL_API_TOKEN'] ?? randomBytes(32).toString('hex'),
    SECRETS_KEY: saved['SECRETS_KEY'] ?? randomBytes(32).toString('base64'),
    DEMO_API_KEY: saved['DEMO_API_KEY'] ?? createApiKey().key,
    DEMO_SIGNING_SECRET: saved['DEMO_SIGNING_SECRET'] ?? randomBytes(32).toString('base64url'),
  }
}

/** Replaces `.local/env` atomically. Only the owner can read the file. */
export async function saveSettings(localDir: string, settings: Readonly<Record<string, string>>): Promise<void> {
  const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`)
  const path = localEnvFile(localDir)
  const newPath = `${path}.new`
  try {
    await rm(newPath, { force: true })
    await writeFile(newPath, `${HEADER}${lines.join('')}`, { flag: 'wx', mode: 0o600, flush: true })
    await rename(newPath, path)
  } catch (error) {
    await rm(newPath, { force: true }).catch(() => {})
    throw error
  }
}

/** Returns the folder of the log files. */
export function logsDir(localDir: string): string {
  return join(localDir, 'logs')
}
