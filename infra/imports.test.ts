import { globSync, readFileSync } from 'node:fs'
import { isBuiltin, stripTypeScriptTypes } from 'node:module'
import { basename, dirname, join, relative } from 'node:path'
import { describe, expect, test } from '@jest/globals'

const root = join(import.meta.dirname, '..')
/** Only run for development and tests; what the page imports is built into its files. */
const DEVELOPMENT = ['packages/console', 'packages/dev-servers', 'packages/testkit']
const all = globSync('{packages,services}/*/package.json', { cwd: root }).map(dirname).toSorted()
const folders = all.filter((folder) => !DEVELOPMENT.includes(folder))

describe('docs/architecture.md, "Packages"', () => {
  const text = readFileSync(join(root, 'docs/architecture.md'), 'utf8')
  const floorOf = (name: string) => Number(new RegExp(`^\\| (\\d) +\\|.*\`${name}\``, 'm').exec(text)?.[1])

  test('has a floor for every package and service', () => {
    expect(all.filter((folder) => Number.isNaN(floorOf(basename(folder))))).toEqual([])
  })

  test.each(all)('%s imports only those of lower floors', (folder) => {
    const used = importsUnder(folder).flatMap(
      ({ specifier }) => /(?:^@workflow-service|\.\.\/packages)\/([\w-]+)/.exec(specifier)?.[1] ?? [],
    )
    const name = basename(folder)
    const wrong = used.filter((each) => each !== name && floorOf(each) >= floorOf(name))
    expect(wrong).toEqual([])
  })
})

// pnpm finds a package for a file if any package above it in the tree depends on it, or if it is hoisted: here, but not
// in the image.
describe.each(folders)('%s', (folder) => {
  const { name, dependencies = {} } = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8')) as {
    name: string
    dependencies?: Record<string, string>
  }
  const imports = importsUnder(folder)

  test('depends on every package that its production code imports', () => {
    const packages = imports.filter(({ specifier }) => !specifier.startsWith('.') && !isBuiltin(specifier))
    const missing = packages.filter(({ specifier }) => {
      const imported = specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')
      return imported !== name && !(imported in dependencies)
    })
    expect(missing).toEqual([])
  })

  test('imports no file of another package by its path', () => {
    const outside = imports.filter(
      ({ file, specifier }) =>
        specifier.startsWith('.') &&
        // What the package exports is built for npm; `wf` uses its sources, which are in the image too.
        !specifier.endsWith('/client/src/index.ts') &&
        relative(folder, join(folder, dirname(file), specifier)).startsWith('..'),
    )
    expect(outside).toEqual([])
  })
})

/** The imports of a package's production code. */
function importsUnder(folder: string): { readonly file: string; readonly specifier: string }[] {
  return globSync('src/**/*.{ts,tsx,js,cjs,mjs}', { cwd: join(root, folder) })
    .filter((file) => !/\.(?:test|d)\.[cm]?ts$/.test(file) && !file.startsWith('src/generated/'))
    .flatMap((file) => importsOf(join(folder, file)).map((specifier) => ({ file, specifier })))
}

/** The modules that a file loads when it runs: types are erased, like Node does. */
function importsOf(file: string): string[] {
  const text = readFileSync(join(root, file), 'utf8')
  const code = file.endsWith('ts') ? stripTypeScriptTypes(text) : text
  const statement = /^\s*(?:import|export)\b(?:[\w\s{},*$]*\bfrom)?\s*['"]([^'"\n]+)['"]/gm
  const call = /\b(?:import|require)\(\s*['"]([^'"\n]+)['"]/g
  return [statement, call].flatMap((pattern) => [...code.matchAll(pattern)].map(([, specifier = '']) => specifier))
}
