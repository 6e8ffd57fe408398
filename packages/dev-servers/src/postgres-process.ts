import { parse } from 'node:path'
import { text } from 'node:stream/consumers'
import { EmbeddedPostgresError } from './embedded-postgres-error.ts'
import { spawnGuarded } from './spawn-guarded.ts'

/** The user that PostgreSQL runs as; empty = the user of this process. */
export interface ServerUser {
  uid?: number
  gid?: number
}

interface RunContext extends ServerUser {
  dataDir?: string
}

/** The output of a program that has ended. */
export interface RunResult {
  hasFailed: boolean
  /** stdout, then stderr. */
  output: string
}

/**
 * Chooses the user for the server. PostgreSQL refuses to run as root: then it is `postgres`, created when missing, else
 * `nobody`. Rejects with an EmbeddedPostgresError when this process may run programs as neither.
 */
export async function findServerUser(): Promise<ServerUser> {
  if (process.platform === 'win32' || process.getuid?.() !== 0) return {}
  const user = await findOrCreateUser()
  // Root in a container may lack the right to switch to another user.
  if (user && !(await run(user, '/bin/sh', ['-c', ':'])).hasFailed) return user
  throw new EmbeddedPostgresError(
    'PostgreSQL does not run as root, and this root cannot become the user "postgres": run this as another user',
  )
}

async function findOrCreateUser(): Promise<ServerUser | undefined> {
  const existing = await findUser('postgres')
  if (existing) return existing
  const options = ['--system', '--user-group', '--no-create-home', '--shell', '/bin/false']
  await run({}, 'useradd', [...options, 'postgres'])
  return (await findUser('postgres')) ?? (await findUser('nobody'))
}

async function findUser(name: string): Promise<Required<ServerUser> | undefined> {
  const [uid, gid] = await Promise.all([run({}, 'id', ['-u', name]), run({}, 'id', ['-g', name])])
  const ids = { uid: Number.parseInt(uid.output, 10), gid: Number.parseInt(gid.output, 10) }
  return ids.uid > 0 && ids.gid >= 0 ? ids : undefined
}

/**
 * The data folder as PostgreSQL can open it. A server that runs as another user may lack access to a folder above it;
 * the link /proc/self/cwd leads into the working directory without passing through those folders.
 */
export function dataDirArgument({ dataDir, uid }: ServerUser & { dataDir: string }): string {
  return uid !== undefined && process.platform === 'linux' ? '/proc/self/cwd' : dataDir
}

/**
 * Where and as which user a program runs. Its environment is empty: PGDATA, PGPORT, LC_ALL etc. would change the
 * server.
 */
export function processOptions({ dataDir, uid, gid }: RunContext) {
  const env = process.platform === 'win32' ? undefined : { PATH: '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin' }
  return { cwd: dataDir ?? parse(process.cwd()).root, env, uid, gid }
}

/** Runs a program to its end. Never rejects: for a program that cannot be started, `output` is the reason. */
export async function run(context: RunContext, command: string, args: string[], input?: string): Promise<RunResult> {
  try {
    const child = await spawnGuarded({ ...processOptions(context), command, args, input, deathSignal: 'SIGKILL' })
    const [stdout, stderr, { code }] = await Promise.all([text(child.stdout), text(child.stderr), child.exited])
    return { hasFailed: code !== 0, output: stdout + stderr }
  } catch (error) {
    return { hasFailed: true, output: String(error) }
  }
}
