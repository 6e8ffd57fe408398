import { execFile } from 'node:child_process'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from '@jest/globals'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describeAppApi } from './app/openapi.ts'
import { APP_OPERATIONS, type AppOperation, isOpen } from './app/operations.ts'
import { ERROR_CODES, ErrorResponse, PUBLIC_ERROR_CODES } from './errors.ts'
import { describeInternalApi } from './internal/openapi.ts'
import { describePublicApi } from './public/openapi.ts'
import { ajv, compile } from './schema/ajv.ts'

const DOCUMENTS = { public: describePublicApi(), internal: describeInternalApi(), app: describeAppApi() }

test('The OpenAPI documents pass the linter with the rules of redocly.yaml', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'workflow-service-openapi-'))
  const files = Object.entries(DOCUMENTS).map(async ([name, document]) => {
    const file = join(folder.path, `${name}.json`)
    await writeFile(file, JSON.stringify(document))
    return file
  })
  const redocly = join(dirname(createRequire(import.meta.url).resolve('@redocly/cli/package.json')), 'bin/cli.js')
  const config = join(import.meta.dirname, '../redocly.yaml')
  const linting = promisify(execFile)(
    process.execPath,
    [redocly, 'lint', ...(await Promise.all(files)), '--config', config, '--format', 'stylish'],
    { cwd: folder.path, env: { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' } },
  )
  const problems = await linting.then(
    () => '',
    (error: { stdout: string }) => error.stdout,
  )
  expect(problems).toBe('')
})

describe.each(Object.entries(DOCUMENTS))('the OpenAPI document of the %s API', (name, document) => {
  test('has no keywords of our validator', () => {
    expect(JSON.stringify(document)).not.toMatch(/"format":"(?:storable|name|trimmed)"|~kind/)
  })

  test('names a server to which its paths can be appended', () => {
    expect(document['servers']).toEqual([
      { url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/), description: expect.any(String) },
    ])
  })

  test('has only examples that its schemas accept, formats included', () => {
    const validator = new Ajv2020({ strict: false, formats: ajv.formats })
    validator.addSchema(document, name)
    const found = findExamples(document)
    expect(found.length).toBeGreaterThan(10)
    const refused = found.filter(
      ({ value, schema }) => !validator.validate({ $ref: `${name}#${encodeURI(schema)}` }, value),
    )
    expect(refused).toEqual([])
  })
})

test("the application's operations need the cookie exactly if they need a sign-in", () => {
  const paths = DOCUMENTS.app['paths'] as Record<string, Record<string, { security?: object[] }>>
  const operations = Object.values<AppOperation>(APP_OPERATIONS)
  const described = operations.map(({ id, path, method }) => [id, paths[path]?.[method]?.security])
  expect(described).toEqual(operations.map((operation) => [operation.id, isOpen(operation) ? [] : undefined]))
})

test('An error code that is added later is valid', () => {
  const isError = compile(ErrorResponse)
  for (const code of [...PUBLIC_ERROR_CODES, 'a_later_code']) {
    expect(isError({ error: { code, message: 'A message.', request_id: 'x' } })).toBe(true)
  }
  expect(Object.keys(ERROR_CODES)).toEqual(expect.arrayContaining([...PUBLIC_ERROR_CODES]))
})

interface FoundExample {
  readonly value: unknown
  /** The JSON pointer of its schema. */
  readonly schema: string
}

/** Examples of bodies (a map beside a schema) and of schemas (a list inside of it). */
function findExamples(node: unknown, pointer = ''): FoundExample[] {
  if (typeof node !== 'object' || node === null) return []
  const { schema, examples } = node as { schema?: unknown; examples?: unknown }
  const own = Array.isArray(examples)
    ? examples.map((value: unknown) => ({ value, schema: pointer }))
    : Object.values((schema && examples ? examples : {}) as Record<string, { value: unknown }>).map(({ value }) => ({
        value,
        schema: `${pointer}/schema`,
      }))
  const inner = Object.entries(node)
    .filter(([key]) => key !== 'examples')
    .flatMap(([key, child]) => findExamples(child, `${pointer}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`))
  return [...own, ...inner]
}
