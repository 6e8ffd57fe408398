import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { useTestFolder } from '../packages/testkit/src/use-test-folder.ts'
import { findPnpm } from './find-pnpm.mjs'

const root = join(import.meta.dirname, '..')
const folder = useTestFolder()
const read = (file: string): string => readFileSync(join(root, file), 'utf8')

test('the command of SECURITY.md lists what the services depend on, and no development tools', () => {
  const file = join(folder, 'sbom.json')
  const [, command = ''] = /^pnpm (sbom .*)$/m.exec(read('SECURITY.md')) ?? []
  const { packageManager } = JSON.parse(read('package.json')) as { packageManager: string }
  const [program = '', ...args] = findPnpm(packageManager.replace('pnpm@', '')).command
  execFileSync(program, [...args, ...command.replaceAll("'", '').replace('sbom.json', file).split(' ')], { cwd: root })
  const { bomFormat, components } = JSON.parse(readFileSync(file, 'utf8')) as {
    bomFormat: string
    components: readonly { name: string }[]
  }
  expect(bomFormat).toBe('CycloneDX')
  const names = components.map(({ name }) => name)
  expect(names).toEqual(expect.arrayContaining(['amqplib', 'commander', 'express', 'pg', 'pino']))
  expect(['jest', 'oxlint', 'react', 'vite'].filter((name) => names.includes(name))).toEqual([])
})
