import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import type { RequestHandler } from 'express'
import { verifyServiceToken } from '../src/index.js'

const packageFolder = join(import.meta.dirname, '..')

function npm(args: string[], cwd: string): void {
  execFileSync('npm', args, { cwd, stdio: ['ignore', 'pipe', 'pipe'] })
}

let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'webhook-token-package-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('the package', () => {
  test('works when installed from its tarball, by import and by require', () => {
    npm(['pack', '--pack-destination', folder, '--loglevel', 'error'], packageFolder)
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

  test('has code that conforms to its declared types', () => {
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
      typeRoots: [join(packageFolder, '../../node_modules/@types')],
    }
    writeFileSync(config, JSON.stringify({ compilerOptions, files: [join(packageFolder, 'src/index.js')] }))
    const tsc = join(packageFolder, '../../node_modules/typescript/bin/tsc')
    expect(execFileSync(process.execPath, [tsc, '--project', config], { encoding: 'utf8' })).toBe('')
  })

  test('declares a middleware that Express accepts', () => {
    const handler: RequestHandler = verifyServiceToken('secret')
    expect(handler).toHaveLength(3)
  })
})
