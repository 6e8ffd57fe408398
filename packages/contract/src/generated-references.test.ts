import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { Ajv } from 'ajv'
import { parse } from 'yaml'
import { manifestJsonSchema, manifestReference } from './manifest-reference.ts'
import { operationsReference } from './operations-reference.ts'

const read = (path: string) => readFileSync(join(import.meta.dirname, '..', path), 'utf8')

test.each([
  ['MANIFEST.md', 'manifest', manifestReference],
  ['manifest.schema.json', 'manifest', manifestJsonSchema],
  ['OPERATIONS.md', 'operations', operationsReference],
])('%s is what `pnpm generate:%s` writes', (file, _script, generate) => {
  expect(read(file)).toBe(generate())
})

test('the JSON Schema of manifests accepts the demo and refuses an unknown field', () => {
  const ajv = new Ajv({ strict: true, strictTypes: false, validateFormats: false })
  const validate = ajv.compile(JSON.parse(manifestJsonSchema()) as object)
  const demo: unknown = parse(read('../../infra/local-stack/demo.yaml'))
  expect([validate(demo), validate.errors]).toEqual([true, null])
  expect(validate({ organization: { name: 'Acme', colour: 'red' } })).toBe(false)
  expect(validate.errors).toMatchObject([{ instancePath: '/organization', keyword: 'additionalProperties' }])
})
