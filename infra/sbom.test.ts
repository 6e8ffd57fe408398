import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from '@jest/globals'
import { findPnpm } from './find-pnpm.mjs'

const root = join(import.meta.dirname, '..')
const folder = mkdtempSync(join(tmpdir(), 'workflow-service-sbom-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

interface Component {
  readonly group?: string
  readonly name: string
  readonly licenses?: readonly object[]
  readonly externalReferences?: readonly { readonly hashes?: readonly { readonly alg: string }[] }[]
}

test('the command of SECURITY.md lists what the services and wf depend on, with licence and hash, and no development tools', () => {
  const [, command = ''] = /^pnpm (sbom .*)$/m.exec(readFileSync(join(root, 'SECURITY.md'), 'utf8')) ?? []
  const file = join(folder, 'sbom.json')
  const args = command.replaceAll("'", '').replace('sbom.json', file).split(' ')
  const { packageManager } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { packageManager: string }
  const [program = '', ...programArgs] = findPnpm(packageManager.replace('pnpm@', '')).command
  execFileSync(program, [...programArgs, ...args], { cwd: root, stdio: 'pipe' })
  const { bomFormat, components } = JSON.parse(readFileSync(file, 'utf8')) as {
    bomFormat: string
    components: readonly Component[]
  }
  expect(bomFormat).toBe('CycloneDX')
  const fromRegistry = components.filter(({ group }) => group !== '@workflow-service')
  const names = new Set(fromRegistry.map(({ group, name }) => (group === undefined ? name : `${group}/${name}`)))
  const wanted = ['packages/cli', ...readdirSync(join(root, 'services')).map((name) => `services/${name}`)].flatMap(
    dependenciesOf,
  )
  expect(wanted.filter((name) => !names.has(name) && !name.startsWith('@workflow-service/'))).toEqual([])
  expect(['jest', 'oxlint', 'react', 'vite'].filter((name) => names.has(name))).toEqual([])
  expect(fromRegistry.filter(({ licenses }) => !licenses?.length).map(({ name }) => name)).toEqual([])
  const hasHash = ({ externalReferences = [] }: Component) =>
    externalReferences.some(({ hashes = [] }) => hashes.some(({ alg }) => alg === 'SHA-512'))
  expect(fromRegistry.filter((component) => !hasHash(component)).map(({ name }) => name)).toEqual([])
}, 120_000)

function dependenciesOf(path: string): string[] {
  try {
    const text = readFileSync(join(root, path, 'package.json'), 'utf8')
    return Object.keys((JSON.parse(text) as { dependencies?: object }).dependencies ?? {})
  } catch {
    return []
  }
}
