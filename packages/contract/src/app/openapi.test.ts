import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { describeAppApi } from './openapi.ts'
import { APP_OPERATIONS, type AppOperation } from './operations.ts'

interface Document {
  paths: Record<string, Record<string, { security?: object[]; description: string }>>
}

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'workflow-service-openapi-'))
})
afterAll(async () => await rm(folder, { recursive: true, force: true }))

describe("the OpenAPI document of the application's API", () => {
  test('passes Redocly’s strict rules, but for the two redirects, which have no 2xx', async () => {
    const file = join(folder, 'openapi.json')
    await writeFile(file, JSON.stringify(describeAppApi()))
    const redocly = join(dirname(createRequire(import.meta.url).resolve('@redocly/cli/package.json')), 'bin/cli.js')
    const rules = ['--extends', 'recommended-strict', '--skip-rule', 'operation-2xx-response']
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [redocly, 'lint', file, ...rules, '--format', 'json'],
      { cwd: folder, env: { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' } },
    )
    expect((JSON.parse(stdout) as { totals: object }).totals).toMatchObject({ errors: 0, warnings: 0 })
  }, 60_000)

  test('has no keywords of our validator', () => {
    expect(JSON.stringify(describeAppApi())).not.toMatch(/storable|~kind/)
  })

  test('needs the cookie for exactly the operations that need a sign-in', () => {
    const { paths } = describeAppApi() as unknown as Document
    for (const { path, method, who } of Object.values<AppOperation>(APP_OPERATIONS)) {
      const isOpen = who === 'anyone' || who === 'link'
      expect([path, method, paths[path]?.[method]?.security]).toEqual([path, method, isOpen ? [] : undefined])
    }
  })
})
