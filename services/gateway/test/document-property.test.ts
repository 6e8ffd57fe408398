import { beforeAll, expect, test } from '@jest/globals'
import { describePublicApi } from '@workflow-service/contract'
import { createApiKey, newId } from '@workflow-service/database'
import * as fc from 'fast-check'
import { type RawAnswer, sendRaw } from '@workflow-service/testkit'
import { contractProblems } from './support/call.ts'
import { startableWorkflow } from './support/test-gateway.ts'
import { useTestGateway } from './support/use-test-gateway.ts'

/** Enough that each operation gets every kind of value many times, and few enough for a minute. */
const RUNS = 1_500

interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
  required: boolean
  schema: Schema
}
interface Schema {
  type?: string | string[]
  format?: string
  minLength?: number
  maxLength?: number
  minimum?: number
  maximum?: number
  properties?: Record<string, Schema>
  required?: string[]
  $ref?: string
}
interface DocumentOperation {
  method: string
  path: string
  parameters: Parameter[]
  body: Schema | undefined
  /** Each status that may be answered, or the codes of an error. */
  answers: readonly (number | string)[]
}
interface Generated {
  operation: DocumentOperation
  target: string
  headers: [string, string][]
  body: string | undefined
}

const document = describePublicApi() as {
  paths: Record<
    string,
    Record<string, { parameters: Parameter[]; requestBody?: Media; responses: Record<string, Media & Schema> }>
  >
  components: { schemas: Record<string, Schema>; responses: Record<string, Media> }
}
interface Media {
  content?: { 'application/json': { schema: Schema } }
  'x-error-codes'?: readonly string[]
}

/** Codes that need a broken service, a limit, or 256 KiB. Other tests cause them. */
const NOT_CAUSED = ['internal_error', 'service_unavailable', 'rate_limited', 'body_too_large']

const gateway = useTestGateway()
let ids: string[]
let keys: string[]

beforeAll(async () => {
  const workflow = startableWorkflow()
  const refused = [{ is_active: false }, { triggers: [] }, { users: [], scope: 'only_me' }].map((change) =>
    startableWorkflow({ name: newId(), ...change }),
  )
  const [open, closed] = [newId(), newId()]
  const { id: organizationId, key } = gateway.organization
  const sessions = [
    { id: open, open: true },
    { id: closed, open: false },
  ]
  await gateway.apply({ workflows: [workflow, ...refused], sessions }, organizationId)
  const reading = createApiKey()
  const starting = createApiKey()
  const api_keys = [
    { name: 'read', key: reading.key, scopes: ['read'] },
    { name: 'start', key: starting.key, scopes: ['start'] },
  ]
  await gateway.apply({ api_keys }, organizationId)
  const suspended = await gateway.apply({ organization: { name: 'Suspended', suspended: true } })
  // The key that may do everything comes first: half of the requests have it.
  keys = [key, reading.key, starting.key, suspended.key]
  const run = await gateway.createEndedRun(workflow.id)
  // What a start needs, a closed session and a run come up more often than the rest.
  const often = [workflow.id, workflow.id, workflow.id.toUpperCase(), closed, closed, run.id]
  ids = [...often, ...often, open, ...refused.map(({ id }) => id)]
})

test(`answers ${RUNS} generated requests as the OpenAPI document declares for their operation, with each of its codes`, async () => {
  const operations = readOperations()
  const seen = new Set<string>()
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(...operations.map((each) => ({ weight: each.body ? 3 : 1, arbitrary: generateRequest(each) }))),
      async (generated) => {
        const { operation, target } = generated
        const { status, headers, text } = await send(generated)
        const body = JSON.parse(text) as { error?: { code: string } }
        expect(contractProblems(operation.method, target, { status, headers, body })).toEqual([])
        expect(status).not.toBe(500)
        const answer = body.error?.code ?? status
        expect(operation.answers).toContain(answer)
        seen.add(`${operation.method} ${operation.path} ${answer}`)
      },
    ),
    { seed: 1, numRuns: RUNS, endOnFailure: false },
  )
  const declared = operations.flatMap(({ method, path, answers }) =>
    answers.map((answer) => `${method} ${path} ${answer}`),
  )
  expect(declared.filter((each) => !seen.has(each) && !NOT_CAUSED.some((code) => each.endsWith(code)))).toEqual([])
}, 300_000)

/** Reads the operations of the document. */
function readOperations(): DocumentOperation[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { parameters, requestBody, responses }]) => ({
      method,
      path,
      parameters,
      body: requestBody?.content?.['application/json'].schema,
      answers: Object.entries(responses).flatMap(
        ([status, { $ref, 'x-error-codes': codes }]): readonly (number | string)[] => {
          const shared = $ref && document.components.responses[$ref.split('/').at(-1)!]
          return (shared ? shared['x-error-codes'] : codes) ?? [Number(status)]
        },
      ),
    })),
  )
}

/** Generates requests to an operation: most are valid or nearly so. */
function generateRequest(operation: DocumentOperation): fc.Arbitrary<Generated> {
  const parametersIn = (location: Parameter['in']) =>
    operation.parameters.filter((parameter) => parameter.in === location)
  const path = fc
    .tuple(
      ...parametersIn('path').map(({ schema }) =>
        mostly(likely(schema), fc.string({ unit: 'binary', minLength: 1, maxLength: 50 })),
      ),
    )
    .map((values) => {
      let target = operation.path
      for (const [index, { name }] of parametersIn('path').entries())
        target = target.replace(`{${name}}`, encode(values[index]))
      return target
    })
  const query = fc
    .array(
      fc.oneof(
        ...parametersIn('query').map(({ name, schema }) => pair(fc.constant(name), textOf(schema))),
        pair(anyText, anyText),
      ),
      { maxLength: 4 },
    )
    .map((pairs) => pairs.map(([name, value]) => `${encode(name)}=${encode(value)}`).join('&'))
  const key = fc.oneof(
    { weight: 12, arbitrary: fc.constantFrom(keys[0], ...keys).map((each) => `Bearer ${each}`) },
    { weight: 12, arbitrary: fc.constant(`Bearer ${keys[0]}`) },
    { weight: 1, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary: headerText.map((text) => `Bearer ${text}`) },
    { weight: 1, arbitrary: headerText },
  )
  const { host: own } = new URL(gateway.url)
  const headers = fc.record({
    key,
    hosts: fc.oneof({ weight: 30, arbitrary: fc.constant([own]) }, { weight: 1, arbitrary: fc.constant([own, own]) }),
    type: operation.body ? mostly(fc.constant('application/json'), headerText) : fc.constant(undefined),
    other: fc.array(
      fc.oneof(
        ...parametersIn('header').map(({ name }) => pair(fc.constant(name), mostly(fc.constant('same'), headerText))),
        pair(fc.constant('X-Request-Id'), headerText),
      ),
      { maxLength: 2 },
    ),
  })
  return fc
    .record({ path, query, headers, body: operation.body ? bodyOf(resolve(operation.body)) : fc.constant(undefined) })
    .map((parts) => ({
      operation,
      target: parts.query === '' ? parts.path : `${parts.path}?${parts.query}`,
      headers: [
        ...parts.headers.hosts.map((host): [string, string] => ['Host', host]),
        ...(parts.body === undefined
          ? []
          : [['Content-Length', String(Buffer.byteLength(parts.body))] as [string, string]]),
        ...(parts.headers.key === undefined ? [] : [['Authorization', parts.headers.key] as [string, string]]),
        ...(parts.headers.type === undefined ? [] : [['Content-Type', parts.headers.type] as [string, string]]),
        ...parts.headers.other,
      ],
      body: parts.body,
    }))
}

const anyText = fc.string({ unit: 'binary', maxLength: 20 })
const headerText = fc.string({
  unit: fc
    .integer({ min: 0x20, max: 0xff })
    .filter((code) => code !== 0x7f)
    .map((code) => String.fromCodePoint(code)),
  maxLength: 300,
})

function pair<Value>(one: fc.Arbitrary<Value>, other: fc.Arbitrary<Value>): fc.Arbitrary<[Value, Value]> {
  return fc.tuple(one, other)
}

function mostly<Value>(usual: fc.Arbitrary<Value>, seldom: fc.Arbitrary<Value>): fc.Arbitrary<Value> {
  return fc.oneof({ weight: 5, arbitrary: usual }, { weight: 1, arbitrary: seldom })
}

/** Generates bodies: objects with likely and unlikely values, other JSON, and text that is not JSON. */
function bodyOf(schema: Schema): fc.Arbitrary<string | undefined> {
  const values = Object.fromEntries(
    Object.entries(schema.properties ?? {}).map(([name, property]) => [name, mostly(likely(property), fc.jsonValue())]),
  )
  const object = fc.record(values, { requiredKeys: [] }).map((value) => JSON.stringify(value))
  return fc.oneof(
    { weight: 8, arbitrary: object },
    { weight: 1, arbitrary: fc.json() },
    { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 50 }) },
    { weight: 1, arbitrary: fc.constant(undefined) },
  )
}

/** Generates values that the schema accepts, or nearly. */
function likely(schema: Schema): fc.Arbitrary<unknown> {
  const types = [schema.type ?? 'string'].flat()
  if (schema.format === 'uuid') {
    return fc.oneof(fc.constantFrom<unknown>(...ids, ...(types.includes('null') ? [null] : [])), fc.uuid())
  }
  if (types.includes('integer')) {
    const { minimum = 0, maximum = 1_000 } = schema
    return fc.integer({ min: minimum - 1, max: maximum + 1 })
  }
  const { minLength = 0, maxLength = 100 } = schema
  return fc.oneof(
    fc.string({ unit: 'binary', minLength, maxLength: Math.min(maxLength, 200) }),
    fc.string({ unit: 'grapheme', maxLength: 30 }),
    fc.constantFrom('go', ' ', '%', 'x'.repeat(maxLength), 'x'.repeat(maxLength + 1)),
  )
}

function textOf(schema: Schema): fc.Arbitrary<string> {
  return mostly(likely(schema).map(String), anyText)
}

function resolve(schema: Schema): Schema {
  return schema.$ref ? document.components.schemas[schema.$ref.slice('#/components/schemas/'.length)]! : schema
}

/** Percent-encodes a value; a lone surrogate, which has no encoding, becomes U+FFFD. */
function encode(value: unknown): string {
  return encodeURIComponent(String(value).toWellFormed())
}

/** Sends a request unchanged; a client such as fetch would normalize it. */
async function send({ operation, target, headers, body = '' }: Generated): Promise<RawAnswer> {
  const lines = [...headers, ['Connection', 'close']].map(([name, value]) => `${name}: ${value}\r\n`)
  const head = `${operation.method.toUpperCase()} ${target} HTTP/1.1\r\n${lines.join('')}\r\n`
  const answer = await sendRaw(gateway.url, Buffer.concat([Buffer.from(head, 'latin1'), Buffer.from(body)]))
  if (!answer) throw new Error('The connection ended without an answer')
  return answer
}
