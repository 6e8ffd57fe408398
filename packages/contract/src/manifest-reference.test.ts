import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { Ajv } from 'ajv'
import { parse } from 'yaml'
import { manifestJsonSchema, manifestReference } from './manifest-reference.ts'

const read = (path: string) => readFileSync(join(import.meta.dirname, '..', path), 'utf8')

describe('the reference of manifests', () => {
  test('is MANIFEST.md as `pnpm generate:manifest` writes it', () => {
    expect(read('MANIFEST.md')).toBe(manifestReference())
  })

  test('is manifest.schema.json as `pnpm generate:manifest` writes it', () => {
    expect(read('manifest.schema.json')).toBe(manifestJsonSchema())
  })

  test('has a JSON Schema that accepts the demo and refuses an unknown field', () => {
    const ajv = new Ajv({ strict: true, strictTypes: false, validateFormats: false })
    const validate = ajv.compile(JSON.parse(manifestJsonSchema()) as object)
    const demo: unknown = parse(read('../../infra/local-stack/demo.yaml'))
    expect([validate(demo), validate.errors]).toEqual([true, null])
    expect(validate({ organization: { name: 'Acme', colour: 'red' } })).toBe(false)
    expect(validate.errors).toMatchObject([{ instancePath: '/organization', keyword: 'additionalProperties' }])
  })
})
