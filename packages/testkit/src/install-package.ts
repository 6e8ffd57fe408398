import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runProgram } from './run-program.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

/** A package as a customer has it: packed, and installed into an empty project. */
export type InstalledPackage = Awaited<ReturnType<typeof installPackage>>

/**
 * Packs the package in the folder with `npm pack` and installs the tarball, both without network. Takes some seconds.
 */
export async function installPackage(packageFolder: string) {
  const folder = mkdtempSync(join(tmpdir(), 'installed-package-'))
  const project = join(folder, 'project')
  mkdirSync(project)
  await runProgram('npm', ['pack', '--pack-destination', folder, '--loglevel', 'error'], { cwd: packageFolder })
  const tarball = join(folder, readdirSync(folder).find((name) => name.endsWith('.tgz')) ?? '')
  /** Writes a file of the project and returns its path. */
  const write = (name: string, text: string): string => {
    const file = join(project, name)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
    return file
  }
  write('package.json', '{ "private": true }')
  await runProgram('npm', ['install', '--offline', '--no-audit', '--no-fund', '--ignore-scripts', tarball], {
    cwd: project,
  })
  const scope = join(project, 'node_modules/@workflow-service')
  const [name = ''] = readdirSync(scope)
  const files = readdirSync(join(scope, name), { recursive: true, withFileTypes: true })
  return {
    /** The customer's project. */
    project,
    /** The published files, sorted. */
    files: files
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(join(scope, name).length + 1))
      .toSorted(),
    /** What publint and "are the types wrong" find in the tarball. */
    problems: JSON.parse(
      await runProgram(process.execPath, [join(import.meta.dirname, 'check-package.ts'), tarball]),
    ) as string[],
    write,
    /** Runs a file of the project. Resolves with its output; rejects with its errors if it fails. */
    run: (file: string, { node = process.execPath, env = {} }: { node?: string; env?: Record<string, string> } = {}) =>
      runProgram(node, [file], { cwd: project, env }),
    /** Type-checks files of the project with the compiler's options, and Node's types. Rejects with the errors. */
    typeCheck: async (names: readonly string[], options: Record<string, unknown>) => {
      const compilerOptions = { noEmit: true, strict: true, target: 'es2022', types: [], ...options }
      const typeRoots = [join(ROOT, 'node_modules/@types')]
      write('tsconfig.json', JSON.stringify({ compilerOptions: { ...compilerOptions, typeRoots }, files: names }))
      await runProgram(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '--project', project])
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

/**
 * Finds the versions of Node on this machine: the running one, and each `node` in PATH. By version, such as `v20.20.2`.
 */
export function findNodes(): Map<string, string> {
  const folders = (process.env['PATH'] ?? '').split(delimiter)
  const found = folders.map((folder) => join(folder, 'node')).filter((file) => existsSync(file))
  return new Map(
    [...found, process.execPath].map((file) => [execFileSync(file, ['--version'], { encoding: 'utf8' }).trim(), file]),
  )
}
