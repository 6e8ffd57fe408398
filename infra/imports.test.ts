import { globSync, readFileSync } from 'node:fs'
import { isBuiltin, stripTypeScriptTypes } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { describe, expect, test } from '@jest/globals'

const root = join(import.meta.dirname, '..')
/** Only run for development and tests; what the page imports is built into its files. */
const DEVELOPMENT = ['packages/console', 'packages/dev-servers', 'packages/testkit']
const folders = globSync('{packages,services}/*/package.json', { cwd: root })
  .map((file) => dirname(file))
  .filter((folder) => !DEVELOPMENT.includes(folder))
  .toSorted()

// pnpm finds a package for a file if any package above it in the tree depends on it, or if it is hoisted: here, but not
// in the image.
describe.each(folders)('%s', (folder) => {
  const { name, dependencies = {} } = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8')) as {
    name: string
    dependencies?: Record<string, string>
  }
  const imports = globSync('src/**/*.{ts,js,cjs,mjs}', { cwd: join(root, folder) })
    .filter((file) => !/\.(?:test|d)\.[cm]?ts$/.test(file) && !file.startsWith('src/generated/'))
    .flatMap((file) => importsOf(join(folder, file)).map((specifier) => ({ file, specifier })))

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

/** The modules that a file loads when it runs: types are erased, like Node does. */
function importsOf(file: string): string[] {
  const text = readFileSync(join(root, file), 'utf8')
  const code = file.endsWith('ts') ? stripTypeScriptTypes(text) : text
  const statement = /^\s*(?:import|export)\b(?:[\w\s{},*$]*\bfrom)?\s*['"]([^'"\n]+)['"]/gm
  const call = /\b(?:import|require)\(\s*['"]([^'"\n]+)['"]/g
  return [statement, call].flatMap((pattern) => [...code.matchAll(pattern)].map(([, specifier = '']) => specifier))
}
