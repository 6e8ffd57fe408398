import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { releaseChangelog, VERSIONS } from './release.ts'

const root = join(import.meta.dirname, '..')

test('a release moves what is unreleased below its version, and leaves older versions as they are', () => {
  const older = '## [1.0.0] - 2026-01-01\n\n- Older.\n'
  const text = `# Changelog\n\n## [Unreleased]\n\n### Added\n\n- New.\n\n${older}`
  const released = releaseChangelog(text, '1.1.0', '2026-02-03')
  expect(released.entry).toBe('## [1.1.0] - 2026-02-03\n\n### Added\n\n- New.\n')
  expect(released.text).toBe(`# Changelog\n\n## [Unreleased]\n\n${released.entry}\n${older}`)
  expect(() => releaseChangelog(released.text, '1.2.0', '2026-02-04')).toThrow('nothing unreleased')
})

test('the packages for customers have one version, in every file that names it', () => {
  const versions = VERSIONS.map(([file, pattern]) => [file, pattern.exec(readFileSync(join(root, file), 'utf8'))?.[0]])
  const [, version] = versions[0] ?? []
  expect(version).toMatch(/^\d+\.\d+\.\d+/)
  expect(versions).toEqual(VERSIONS.map(([file]) => [file, version]))
})
