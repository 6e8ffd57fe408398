import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'

const FOLDER = import.meta.dirname
const ROOT = join(FOLDER, '../..')
/** The built page. */
export const CONSOLE_DIST = join(FOLDER, 'dist')
const HASH_FILE = join(CONSOLE_DIST, '.sources-hash')
const INPUTS = [
  join(ROOT, 'pnpm-lock.yaml'),
  ...['build.ts', 'vite.config.ts', 'index.html'].map((name) => join(FOLDER, name)),
]

/**
 * Builds the page unless its sources are unchanged. Resolves to whether it was built. Vite runs in another process,
 * which takes its memory with it.
 */
export async function buildConsole(): Promise<boolean> {
  if (isBuiltFrom(hashSources())) return false
  await promisify(execFile)(process.execPath, [import.meta.filename])
  return true
}

/** Builds in a folder of its own. Of processes that build at the same time, the first one's page is kept. */
async function build(): Promise<boolean> {
  const hash = hashSources()
  if (isBuiltFrom(hash)) return false
  // Jest sets another value, with which the page would contain React's checks for development.
  process.env['NODE_ENV'] = 'production'
  const vite = await import('vite')
  const folder = `${CONSOLE_DIST}-${process.pid}`
  try {
    await vite.build({ configFile: join(FOLDER, 'vite.config.ts'), build: { outDir: folder } })
    writeFileSync(join(folder, '.sources-hash'), hash)
    return publish(folder, hash)
  } finally {
    for (const each of [folder, `${folder}-old`]) rmSync(each, { recursive: true, force: true })
  }
}

/** Moves what was built into its place, unless another process has done so. Returns whether it did. */
function publish(folder: string, hash: string): boolean {
  for (let tries = 1; !isBuiltFrom(hash); tries += 1) {
    try {
      if (existsSync(CONSOLE_DIST)) renameSync(CONSOLE_DIST, `${folder}-old`)
      renameSync(folder, CONSOLE_DIST)
      return true
    } catch (error) {
      // Another process has moved one of them in between.
      if (tries === 5) throw error
      rmSync(`${folder}-old`, { recursive: true, force: true })
    }
  }
  return false
}

function isBuiltFrom(hash: string): boolean {
  try {
    return readFileSync(HASH_FILE, 'utf8') === hash
  } catch {
    // There is no page, or another process is moving one.
    return false
  }
}

function hashSources(): string {
  const hash = createHash('sha256')
  // The page contains parts of the contract: routes, limits, the check of descriptions.
  const folders = [join(FOLDER, 'src'), join(FOLDER, 'public'), join(ROOT, 'packages/contract/src')]
  const sources = folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name)),
  )
  for (const file of [...INPUTS, ...sources].toSorted()) {
    hash.update(`${relative(ROOT, file)}\0`).update(readFileSync(file))
  }
  return hash.digest('hex')
}

/** Returns the sizes of the built page after gzip, in bytes, by the manifest that Vite writes. */
export function measureConsole() {
  type Parts = Readonly<Record<'imports' | 'dynamicImports' | 'css', readonly string[] | undefined>>
  const manifest = JSON.parse(readFileSync(join(CONSOLE_DIST, '.manifest.json'), 'utf8')) as Record<
    string,
    Parts & { readonly file: string }
  >
  const list = (name: string, part: keyof Parts) => manifest[name]?.[part] ?? []
  /** Adds what a file imports, and what it may load later, such as an editor. */
  const withImports = (files: Set<string>, name: string, hasLater: boolean): Set<string> => {
    if (files.has(name)) return files
    files.add(name)
    const imports = [...list(name, 'imports'), ...(hasLater ? list(name, 'dynamicImports') : [])]
    return imports.reduce((all, other) => withImports(all, other, hasLater), files)
  }
  const bytesOf = (file: string) => gzipSync(readFileSync(join(CONSOLE_DIST, file))).length
  const sum = (files: Iterable<string>) => [...files].reduce((bytes, file) => bytes + bytesOf(file), 0)
  const total = (names: Set<string>) => sum([...names].map((name) => manifest[name]!.file))
  const start = withImports(new Set(), 'index.html', false)
  const pages = [...start].flatMap((name) => list(name, 'dynamicImports'))
  return {
    scriptsAtStart: total(start),
    largestPage: Math.max(...pages.map((page) => total(withImports(new Set(start), page, true)))),
    styles: sum(list('index.html', 'css')),
  }
}

function kB(bytes: number): string {
  return `${(bytes / 1000).toFixed(1)} kB`
}

if (import.meta.main) {
  const startedMs = Date.now()
  const wasBuilt = await build()
  const sizes = measureConsole()
  process.stdout.write(
    `${wasBuilt ? `Built in ${((Date.now() - startedMs) / 1000).toFixed(1)} s` : 'Unchanged'}. After gzip: ` +
      `JavaScript at start ${kB(sizes.scriptsAtStart)}, of the largest page ${kB(sizes.largestPage)}, ` +
      `CSS ${kB(sizes.styles)}.\n`,
  )
}
