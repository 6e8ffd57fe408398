import { randomBytes } from 'node:crypto'
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { createApiKey } from '@workflow-service/database'
import { localEnvFile } from '@workflow-service/cli/local-folder'

/** What is made up once and then kept in `.local/env`. */
export interface LocalSecrets {
  readonly INTERNAL_API_TOKEN: string
  readonly SECRETS_KEY: string
  readonly DEMO_API_KEY: string
  readonly DEMO_SIGNING_SECRET: string
}

const HEADER = `# Written by npm start, read by wf. Secret: it opens everything in this folder.
`

/** The settings of the last start; empty before the first one. */
export async function readLastSettings(localDir: string): Promise<NodeJS.Dict<string>> {
  const text = await readFile(localEnvFile(localDir), 'utf8').catch(() => '')
  return parseEnv(text)
}

/** The secrets of the last start, those that are missing made up. */
export function toSecrets(last: NodeJS.Dict<string>): LocalSecrets {
  return {
    INTERNAL_API_TOKEN: last['INTERNAL_API_TOKEN'] ?? randomBytes(32).toString('hex'),
    SECRETS_KEY: last['SECRETS_KEY'] ?? randomBytes(32).toString('base64'),
    DEMO_API_KEY: last['DEMO_API_KEY'] ?? createApiKey().key,
    DEMO_SIGNING_SECRET: last['DEMO_SIGNING_SECRET'] ?? randomBytes(32).toString('base64url'),
  }
}

/** Replaces `.local/env` whole: it is never half written, and only its owner can read it. */
export async function writeSettings(localDir: string, settings: Readonly<Record<string, string>>): Promise<void> {
  const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`)
  const file = localEnvFile(localDir)
  const draft = `${file}.new`
  try {
    await mkdir(localDir, { recursive: true })
    await rm(draft, { force: true })
    const handle = await open(draft, 'wx', 0o600)
    try {
      await handle.writeFile(`${HEADER}${lines.join('')}`)
      await handle.sync()
    } finally {
      await handle.close()
    }
    await rename(draft, file)
  } catch (error) {
    await rm(draft, { force: true }).catch(() => {})
    throw error
  }
}

/** Where the logs are. */
export function logsDir(localDir: string): string {
  return join(localDir, 'logs')
}
