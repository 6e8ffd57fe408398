import { cp, lstat, mkdtemp, rename, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { EmbeddedPostgresError } from './embedded-postgres-error.ts'
import { run, type ServerUser } from './postgres-process.ts'

/** The programs of one PostgreSQL version. */
export type PostgresBinaries = ReturnType<typeof binariesIn>

/**
 * Finds the binaries for this platform where the server's user can read them. A checkout below a closed folder such as
 * /root is out of that user's reach: then the binaries are copied to a temporary folder, once for each version. Rejects
 * with an EmbeddedPostgresError when there are none.
 */
export async function findBinaries(user: ServerUser): Promise<PostgresBinaries> {
  const installed = installedBinaries()
  if (user.uid === undefined || (await canRead(installed, user))) return installed
  const shared = binariesIn(`/var/tmp/workflow-service-postgres-${installed.version}`, installed.version)
  if (!(await isWrittenByRootOnly(shared.home))) await copyFolder(installed.home, shared.home)
  if ((await isWrittenByRootOnly(shared.home)) && (await canRead(shared, user))) return shared
  throw new EmbeddedPostgresError(
    `The user that PostgreSQL runs as (uid ${user.uid}) can read neither ${installed.home} nor ${shared.home}: ` +
      'put the checkout where other users may read it, or run this as another user than root',
  )
}

/** Copies into a draft, then renames it, so that another process never finds half a copy. */
async function copyFolder(from: string, to: string): Promise<void> {
  const draft = await mkdtemp(`${to}-`)
  await cp(from, draft, { recursive: true, verbatimSymlinks: true })
  await run({}, 'chmod', ['-R', 'u=rwX,go=rX', draft])
  await rename(draft, to).catch(async () => await rm(draft, { recursive: true, force: true }))
}

function installedBinaries(): PostgresBinaries {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const name = `@embedded-postgres/${platform}-${process.arch}`
  try {
    const resolver = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'))
    const root = dirname(dirname(resolver.resolve(name)))
    const { version } = resolver(join(root, 'package.json')) as { version: string }
    return binariesIn(join(root, 'native'), version)
  } catch (error) {
    throw new EmbeddedPostgresError(
      `There is no embedded PostgreSQL for ${platform}-${process.arch} (${name} is not installed): ` +
        'use another machine, or run the services without npm start, on a PostgreSQL of your own (docs/operations.md, "Without containers")',
      { cause: error },
    )
  }
}

function binariesIn(home: string, version: string) {
  const suffix = process.platform === 'win32' ? '.exe' : ''
  return {
    home,
    version,
    major: version.split('.')[0] ?? '',
    initdb: join(home, 'bin', `initdb${suffix}`),
    postgres: join(home, 'bin', `postgres${suffix}`),
    pgCtl: join(home, 'bin', `pg_ctl${suffix}`),
  }
}

async function canRead(binaries: PostgresBinaries, user: ServerUser): Promise<boolean> {
  const script = '"$1" --version && "$2" --version && test -r "$3"'
  const catalog = join(binaries.home, 'share', 'postgresql', 'postgres.bki')
  const result = await run(user, '/bin/sh', ['-c', script, 'sh', binaries.postgres, binaries.initdb, catalog])
  return !result.hasFailed
}

/** Any user may write to a temporary folder, and these programs are about to be executed. */
async function isWrittenByRootOnly(folder: string): Promise<boolean> {
  const found = await lstat(folder).catch(() => undefined)
  return found !== undefined && found.isDirectory() && found.uid === 0 && (found.mode & 0o022) === 0
}
