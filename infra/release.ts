// pnpm release [VERSION] [--dry-run]: packs the packages for customers, checks them, and prints the commands that
// publish them. It never publishes. Without --dry-run it also writes the version into the packages, and the changelog
// entry.
import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

const ROOT = join(import.meta.dirname, '..')
const FOLDER = join(ROOT, '.local/release')
const NPM_PACKAGES = ['client', 'webhook-token']
/** Packed by a program of its own, which leaves out what operators need. */
const VERSIONED = [...NPM_PACKAGES, 'cli']

/** Where the version of the packages is written, each with the text around it. */
export const VERSIONS: readonly [file: string, pattern: RegExp][] = [
  ...VERSIONED.map((name): [string, RegExp] => [`packages/${name}/package.json`, /(?<="version": ")[^"]*/]),
  ['packages/client/src/client.ts', /(?<=workflow-service-client\/)[\w.-]*/],
  ['packages/python/pyproject.toml', /(?<=^version = ")[^"]*/m],
  ['packages/python/src/workflow_service/__init__.py', /(?<=__version__ = ")[^"]*/],
  ['packages/python/src/workflow_service/_client.py', /(?<=workflow-service-python\/)[\w.-]*/],
]

const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8')
const versionIn = (file: string, pattern: RegExp): string => pattern.exec(read(file))?.[0] ?? 'no version'

function run(command: string, args: readonly string[], cwd = ROOT): string {
  return execFileSync(command, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
}

/** Turns what is unreleased into the entry of a version, under a new and empty "Unreleased". */
export function releaseChangelog(text: string, version: string, date: string): { text: string; entry: string } {
  const heading = '## [Unreleased]\n'
  const [before, rest] = text.split(heading)
  if (rest === undefined) throw new Error('CHANGELOG.md has no "## [Unreleased]".')
  const [changes = '', ...older] = rest.split(/\n(?=## )/)
  if (changes.trim() === '') throw new Error('CHANGELOG.md has nothing unreleased.')
  const entry = `## [${version}] - ${date}\n\n${changes.trim()}\n`
  return { text: `${before}${heading}\n${entry}${older.map((each) => `\n${each}`).join('')}`, entry }
}

const python = (...args: string[]): string => run('python3', args, join(ROOT, 'packages/python'))

/** Packs everything. Returns what the checks found. */
function pack(): string[] {
  rmSync(FOLDER, { recursive: true, force: true })
  mkdirSync(FOLDER, { recursive: true })
  const problems: string[] = []
  for (const name of NPM_PACKAGES) {
    const folder = join(ROOT, 'packages', name)
    run('npm', ['pack', '--pack-destination', FOLDER, '--loglevel', 'error'], folder)
  }
  run(process.execPath, ['packages/cli/pack.ts', FOLDER])
  for (const tarball of readdirSync(FOLDER)) {
    const found = run(process.execPath, ['packages/testkit/src/check-package.ts', join(FOLDER, tarball)])
    problems.push(...(JSON.parse(found) as string[]).map((problem) => `${tarball}: ${problem}`))
  }
  const build = 'import sys, build_backend as b; print(b.build_wheel(sys.argv[1]))'
  const wheel = join(FOLDER, python('-B', '-c', build, FOLDER).trim())
  // From the wheel itself: what is missing in it fails.
  python('-c', 'import sys; sys.path.insert(0, sys.argv[1]); import workflow_service.webhook', wheel)
  return problems
}

function main(): void {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: { 'dry-run': { type: 'boolean' } } })
  const [first = ['', /$/]] = VERSIONS
  const [version = versionIn(...first)] = positionals
  if (!/^\d+\.\d+\.\d+(?:-[\w.]+)?$/.test(version)) throw new Error(`"${version}" is not a version such as 1.2.0.`)
  const { text, entry } = releaseChangelog(read('CHANGELOG.md'), version, new Date().toISOString().slice(0, 10))
  const outdated = VERSIONS.filter(([file, pattern]) => versionIn(file, pattern) !== version)
  if (!values['dry-run']) {
    for (const [file, pattern] of outdated) writeFileSync(join(ROOT, file), read(file).replace(pattern, version))
    writeFileSync(join(ROOT, 'CHANGELOG.md'), text)
  }
  const problems = pack()
  const files = readdirSync(FOLDER)
  const [heading = ''] = entry.split('\n')
  print(`Packed into .local/release:\n${files.map((file) => `  ${file}`).join('\n')}`)
  if (values['dry-run']) {
    print(`The changelog would get "${heading}", with ${entry.split('\n- ').length - 1} changes.`)
    for (const [file] of outdated) print(`${file} would get the version ${version}.`)
  }
  if (problems.length > 0) throw new Error(`The checks found:\n${problems.join('\n')}`)
  print(`publint, "are the types wrong" and the import of the wheel found nothing.

Claim the names first, once: only you may publish what customers run with their keys and secrets.
  npm org create workflow-service          # the scope @workflow-service, on npmjs.com
  https://pypi.org/manage/account/publishing/   # the project workflow-service

Then publish, and tag the commit:`)
  for (const file of files.filter((each) => each.endsWith('.tgz'))) {
    print(`  npm publish .local/release/${file} --access public`)
  }
  print(`  twine upload .local/release/*.whl\n  git tag v${version} && git push origin v${version}`)
}

function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

if (import.meta.main) {
  try {
    main()
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
    process.exitCode = 1
  }
}
