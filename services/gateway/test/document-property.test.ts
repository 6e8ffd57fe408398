import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { describePublicApi } from '@workflow-service/contract'
import { newId } from '@workflow-service/database'
import { Ajv2020 } from 'ajv/dist/2020.js'
import * as fc from 'fast-check'
import { Agent, type IncomingHttpHeaders, request } from 'node:http'
import { startableWorkflow } from './support/test-gateway.ts'
import { useTestGateway } from './support/use-test-gateway.ts'

/** Enough that each operation gets every kind of value many times, and few enough for a minute. */
const RUNS = 3_000

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
  isAnswer: Map<number, (body: unknown) => boolean>
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
}

const gateway = useTestGateway()
let known: { workflowId: string; sessionId: string; runId: string }
const agent = new Agent({ keepAlive: true, maxSockets: 8 })

beforeAll(async () => {
  const workflow = startableWorkflow()
  known = { workflowId: workflow.id, sessionId: newId(), runId: '' }
  await gateway.apply(
    { workflows: [workflow], sessions: [{ id: known.sessionId, open: true }] },
    gateway.organization.id,
  )
  known.runId = (await gateway.createEndedRun(workflow.id)).id
})

afterAll(() => agent.destroy())

test(`answers ${RUNS} generated requests as the OpenAPI document declares, and none with a 500`, async () => {
  const operations = readOperations()
  const counts = new Map<string, number>()
  await fc.assert(
    fc.asyncProperty(fc.oneof(...operations.map(generateRequest)), async (generated) => {
      const { status, headers, text } = await send(generated)
      const { operation } = generated
      const isAnswer = operation.isAnswer.get(status)
      expect({ status, isDeclared: isAnswer !== undefined }).toEqual({ status, isDeclared: true })
      expect(status).not.toBe(500)
      expect(headers['content-type']).toBe('application/json; charset=utf-8')
      expect(isAnswer?.(JSON.parse(text))).toBe(true)
      counts.set(
        `${operation.method} ${operation.path} ${status}`,
        (counts.get(`${operation.method} ${operation.path} ${status}`) ?? 0) + 1,
      )
    }),
    { seed: 1, numRuns: RUNS, endOnFailure: false },
  )
  // Guards against a generator that reaches only errors.
  for (const { method, path } of operations) {
    for (const status of [method === 'post' ? 202 : 200, 401])
      expect(counts.get(`${method} ${path} ${status}`)).toBeGreaterThan(0)
  }
  expect(counts.get('post /v1/workflows/{workflow_id}/start 422')).toBeGreaterThan(0)
  expect(counts.get('get /v1/workflows 422')).toBeGreaterThan(0)
}, 300_000)

/** Reads the operations of the document, each with a validator for every declared answer. */
function readOperations(): DocumentOperation[] {
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  ajv.addSchema({ $id: 'document', ...document })
  const validatorOf = (pointer: string) => ajv.compile({ $ref: `document#${pointer}` })
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { parameters, requestBody, responses }]) => ({
      method,
      path,
      parameters,
      body: requestBody?.content?.['application/json'].schema,
      isAnswer: new Map(
        Object.entries(responses).map(([status, response]) => {
          const own = `/paths/${path.replaceAll('~', '~0').replaceAll('/', '~1')}/${method}/responses/${status}`
          const pointer = response.$ref?.slice(1) ?? own.replaceAll('{', '%7B').replaceAll('}', '%7D')
          return [Number(status), validatorOf(`${pointer}/content/application~1json/schema`)]
        }),
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
    { weight: 12, arbitrary: fc.constant(`Bearer ${gateway.organization.key}`) },
    { weight: 1, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary: headerText.map((text) => `Bearer ${text}`) },
    { weight: 1, arbitrary: headerText },
  )
  const headers = fc.record({
    key,
    type: operation.body ? mostly(fc.constant('application/json'), headerText) : fc.constant(undefined),
    other: fc.array(
      fc.oneof(
        ...parametersIn('header').map(({ name }) => pair(fc.constant(name), headerText)),
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
        ['Host', new URL(gateway.url).host],
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
    const ids = [known.workflowId, known.sessionId, known.runId, known.workflowId.toUpperCase()]
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
async function send({
  operation,
  target,
  headers,
  body,
}: Generated): Promise<{ status: number; headers: IncomingHttpHeaders; text: string }> {
  const {
    promise,
    resolve: finish,
    reject,
  } = Promise.withResolvers<{ status: number; headers: IncomingHttpHeaders; text: string }>()
  const { hostname, port } = new URL(gateway.url)
  const sending = request(
    { agent, hostname, port, method: operation.method, path: target, headers: headers.flat() },
    (answer) => {
      let text = ''
      answer.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      answer.on('end', () => finish({ status: answer.statusCode ?? 0, headers: answer.headers, text }))
      answer.on('error', reject)
    },
  )
  sending.on('error', reject)
  sending.end(body)
  return await promise
}
