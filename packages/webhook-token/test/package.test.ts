import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import type { RequestHandler } from 'express'
import { verifyServiceToken } from '../src/index.js'

const room = join(import.meta.dirname, '..')

function npm(args: string[], cwd: string): void {
  execFileSync('npm', args, { cwd, stdio: ['ignore', 'pipe', 'pipe'] })
}

let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'webhook-token-package-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('the package', () => {
  test('works from its tarball, installed into an empty folder, as a module and by require', () => {
    npm(['pack', '--pack-destination', folder, '--loglevel', 'error'], room)
    const [tarball = ''] = readdirSync(folder).filter((name) => name.endsWith('.tgz'))
    const customer = join(folder, 'customer')
    mkdirSync(customer)
    writeFileSync(join(customer, 'package.json'), '{ "private": true }')
    npm(['install', '--offline', '--no-audit', '--no-fund', '--ignore-scripts', join(folder, tarball)], customer)

    const installed = join(customer, 'node_modules/@workflow-service/webhook-token')
    expect(readdirSync(installed).toSorted()).toEqual(['LICENSE', 'README.md', 'package.json', 'src'])
    expect(readdirSync(join(installed, 'src')).toSorted()).toEqual(['index.d.ts', 'index.js'])

    const check = "console.log(checkServiceToken(createServiceToken('secret'), 'secret').ok)"
    const names = '{ checkServiceToken, createServiceToken }'
    writeFileSync(join(customer, 'use.mjs'), `import ${names} from '@workflow-service/webhook-token'\n${check}\n`)
    writeFileSync(join(customer, 'use.cjs'), `const ${names} = require('@workflow-service/webhook-token')\n${check}\n`)
    for (const file of ['use.mjs', 'use.cjs']) {
      expect(execFileSync(process.execPath, [file], { cwd: customer, encoding: 'utf8' })).toBe('true\n')
    }
  })

  test('has code that keeps to its declared types', () => {
    const config = join(folder, 'tsconfig.json')
    const compilerOptions = {
      allowJs: true,
      checkJs: true,
      noEmit: true,
      strict: true,
      noUncheckedIndexedAccess: true,
      module: 'nodenext',
      target: 'es2022',
      types: ['node'],
      typeRoots: [join(room, '../../node_modules/@types')],
    }
    writeFileSync(config, JSON.stringify({ compilerOptions, files: [join(room, 'src/index.js')] }))
    const tsc = join(room, '../../node_modules/typescript/bin/tsc')
    expect(execFileSync(process.execPath, [tsc, '--project', config], { encoding: 'utf8' })).toBe('')
  })

  test('declares a middleware that Express takes', () => {
    const handler: RequestHandler = verifyServiceToken('secret')
    expect(handler).toHaveLength(3)
  })
})
