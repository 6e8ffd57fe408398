import { execFile } from 'node:child_process'
import { existsSync, globSync } from 'node:fs'
import { mkdir, readFile, realpath, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

const execute = promisify(execFile)
const root = join(import.meta.dirname, '../..')
const CONTENT = ['packages', 'services', 'package.json', 'tsconfig.base.json']

interface Package {
  readonly name: string
  readonly dependencies?: Record<string, string>
  readonly devDependencies?: Record<string, string>
}

/** Reports whether the clone has the commit; a shallow one may not. */
export async function hasCommit(commit: string): Promise<boolean> {
  return await execute('git', ['cat-file', '-e', `${commit}^{commit}`], { cwd: root }).then(
    () => true,
    () => false,
  )
}

/**
 * Writes the packages and services of a commit into an empty folder, so that they run there. Their libraries are those
 * that are installed for the present commit, because an install would need the network; what only the release needs is
 * in this folder's `package.json`. Takes a few seconds, for Prisma's client.
 */
export async function extractRelease(commit: string, folder: string): Promise<void> {
  const archive = join(folder, 'release.tar')
  await execute('git', ['archive', `--output=${archive}`, commit, ...CONTENT], { cwd: root })
  await execute('tar', ['-xf', archive], { cwd: folder })
  const files = globSync('{packages,services}/*/package.json', { cwd: folder })
  const packages = await Promise.all(
    files.map(async (file) => {
      const content = JSON.parse(await readFile(join(folder, file), 'utf8')) as Package
      return { path: dirname(file), ...content }
    }),
  )
  const folders = new Map(packages.map(({ name, path }) => [name, join(folder, path)]))
  for (const { path, dependencies = {}, devDependencies = {} } of packages) {
    for (const [name, version] of Object.entries({ ...devDependencies, ...dependencies })) {
      const target = version.startsWith('workspace:') ? folders.get(name) : await findInstalled(name, path)
      if (target === undefined) continue
      const link = join(folder, path, 'node_modules', name)
      await mkdir(dirname(link), { recursive: true })
      await symlink(target, link)
    }
  }
  await execute(process.execPath, [join(folder, 'packages/database/scripts/generate-prisma-client.mjs')])
}

/** The folder of a library that is installed for the package or, if it no longer uses it, for another one. */
async function findInstalled(name: string, path: string): Promise<string | undefined> {
  const paths = [path, ...globSync('{packages,services}/*', { cwd: root }), 'infra/upgrade']
  const found = paths.map((each) => join(root, each, 'node_modules', name)).find((each) => existsSync(each))
  return found === undefined ? undefined : await realpath(found)
}
