import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { envExample, withGeneratedTables, wrap } from './generate-settings.ts'
import { SERVICE_NAMES, SERVICE_SETTINGS } from './service-settings.ts'

const root = join(import.meta.dirname, '..')

describe('the settings', () => {
  // The services skip this check at run time: compiling the meta schema would slow their start.
  test.each(SERVICE_NAMES)('of the %s have a schema that is valid JSON Schema 2020-12', (service) => {
    const metaSchema = new Ajv2020({ strict: false })
    expect(metaSchema.validateSchema(SERVICE_SETTINGS[service].schema)).toBe(true)
  })

  test('are in docs/operations.md as `pnpm generate:settings` writes them, and so are the log events', () => {
    const operations = readFileSync(join(root, 'docs/operations.md'), 'utf8')
    expect(operations).toBe(withGeneratedTables(operations))
  })

  test('are in .env.example as `pnpm generate:settings` writes them', () => {
    expect(readFileSync(join(root, '.env.example'), 'utf8')).toBe(envExample())
  })

  test('have comments with words that are longer than a line', () => {
    const address = `https://${'a'.repeat(100)}.test`
    expect(wrap(`See ${address} for more.`)).toEqual(['# See', `# ${address}`, '# for more.'])
  })
})
