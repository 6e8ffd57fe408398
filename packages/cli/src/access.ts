import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { CliError } from './cli-error.ts'
import { localEnvFile, readLocalDir } from './local-folder.ts'

/** An API key and the address of the service that accepts it. */
export interface Credentials {
  readonly url: string
  readonly key: string
}

/** Whether commands that work both ways use the database or an API key; undefined if neither is set up. */
export function chooseAccess(env: NodeJS.ProcessEnv): 'operator' | 'key' | undefined {
  if (env['WF_API_KEY']?.trim()) return 'key'
  if (hasDatabase(env)) return 'operator'
  return existsSync(credentialsFile(env)) ? 'key' : undefined
}

/** Whether there are commands of operators: the npm package has only those with an API key. */
export const HAS_OPERATOR = existsSync(join(import.meta.dirname, 'operator'))

/** Whether the settings of an operator are in the environment, or in the file of the local stack. */
export function hasDatabase(env: NodeJS.ProcessEnv): boolean {
  if (!HAS_OPERATOR) return false
  return Boolean(env['DATABASE_URL']?.trim()) || existsSync(localEnvFile(readLocalDir(env)))
}

/** The file of `wf login`, as the XDG Base Directory Specification has it. */
export function credentialsFile(env: NodeJS.ProcessEnv): string {
  const folder = env['XDG_CONFIG_HOME']?.trim() || join(env['HOME']?.trim() || homedir(), '.config')
  return join(folder, 'workflow-service', 'credentials.json')
}

/** The address as the client uses it: the case of a host and the port of a scheme are no difference. */
const rootOf = (url: string) => (URL.canParse(url) ? new URL(url).href : url).replace(/\/+$/, '')

/** Returns the key of the environment, or the saved one, which no other service gets. @throws CliError */
export function readCredentials(env: NodeJS.ProcessEnv): Credentials {
  const [key, url] = [env['WF_API_KEY']?.trim(), env['WF_API_URL']?.trim()]
  if (key && url) return { key, url }
  const saved = readSaved(env)
  if (key && !saved)
    throw new CliError('WF_API_URL is missing: the address of the service, as in https://api.example.com.')
  if (!saved) throw new CliError('There is no API key. Save one with wf login URL, or set WF_API_KEY and WF_API_URL.')
  if (!key && url && rootOf(url) !== rootOf(saved.url)) {
    const advice = 'Unset it, or set WF_API_KEY, too.'
    throw new CliError(`The saved key is one of ${saved.url}, and WF_API_URL is another address. ${advice}`)
  }
  return { key: key || saved.key, url: url || saved.url }
}

function readSaved(env: NodeJS.ProcessEnv): Credentials | undefined {
  const file = credentialsFile(env)
  if (!existsSync(file)) return undefined
  // As ssh does: a key that others can read is used by others.
  if (process.platform !== 'win32' && (statSync(file).mode & 0o077) !== 0) {
    throw new CliError(`Others can read ${file}. Run chmod 600 on it, or wf login again with a new key.`)
  }
  try {
    const { url, key } = JSON.parse(readFileSync(file, 'utf8')) as Partial<Credentials>
    if (typeof url === 'string' && typeof key === 'string') return { url, key }
  } catch {
    // The same error as for other content.
  }
  throw new CliError(`${file} cannot be read. Run wf login again.`)
}

/** Writes the file, readable only by its owner. Returns its path. @throws CliError */
export function saveCredentials(env: NodeJS.ProcessEnv, credentials: Credentials): string {
  const file = credentialsFile(env)
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    if (existsSync(file)) chmodSync(file, 0o600)
    writeFileSync(file, `${JSON.stringify(credentials, null, 2)}\n`, { mode: 0o600 })
  } catch (error) {
    const advice = 'Set XDG_CONFIG_HOME to a folder that can be written, or WF_API_KEY and WF_API_URL.'
    throw new CliError(`The key cannot be saved (${(error as Error).message}). ${advice}`, {}, error)
  }
  return file
}

/** Returns the path of the deleted file; undefined if there was none. */
export function deleteCredentials(env: NodeJS.ProcessEnv): string | undefined {
  const file = credentialsFile(env)
  if (!existsSync(file)) return undefined
  rmSync(file)
  return file
}
