import { beforeAll, expect, test } from '@jest/globals'
import { errorCodesOf, type Operation, OPERATIONS } from '@workflow-service/contract'
import { createApiKey, newId } from '@workflow-service/database'
import * as fc from 'fast-check'
import { sendRaw } from '@workflow-service/testkit'
import { anyCharacter } from '@workflow-service/testkit/any-character'
import { contractProblems } from './support/call.ts'
import { startableWorkflow, useTestGateway } from './support/test-gateway.ts'

/** Enough that each operation gets every kind of value many times, and few enough for a minute. */
const RUNS = 1_500

interface Schema {
  readonly type?: string | readonly string[]
  readonly format?: string
  readonly minLength?: number
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
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

test(`answers ${RUNS} generated requests as declared for their operation, with each of its codes`, async () => {
  const operations = Object.values<Operation>(OPERATIONS)
  const seen = new Set<string>()
  const requests = operations.map((each) => ({ weight: each.body ? 3 : 1, arbitrary: generateRequest(each) }))
  await fc.assert(
    fc.asyncProperty(fc.oneof(...requests), async ({ operation: { id, method }, target, bytes }) => {
      const sent = await sendRaw(gateway.url, bytes)
      if (!sent) throw new Error('The connection ended without a response')
      const { status, headers, text } = sent
      const body = JSON.parse(text) as { error?: { code: string } }
      const problems = contractProblems(method, target, { status, headers, body })
      if (problems.length > 0 || status === 500) throw new Error(`${status} ${problems.join('; ')}`)
      seen.add(`${id} ${body.error?.code ?? status}`)
    }),
    { seed: 3, numRuns: RUNS, endOnFailure: false },
  )
  const declared = operations.flatMap((each) =>
    [each.success.status, ...errorCodesOf(each)].map((response) => `${each.id} ${response}`),
  )
  expect(declared.filter((each) => !seen.has(each) && !NOT_CAUSED.some((code) => each.endsWith(code)))).toEqual([])
})

const propertiesOf = (part: object | undefined) =>
  Object.entries((part as { properties: Record<string, Schema> } | undefined)?.properties ?? {})

/**
 * Generates requests to an operation, most of them valid or nearly so, as they are sent: a client such as fetch would
 * normalize them.
 */
function generateRequest(operation: Operation) {
  const { method, path, params, query, headers, body } = operation
  const anyId = fc.string({ unit: anyCharacter, minLength: 1, maxLength: 50 })
  const pathname = fc
    .tuple(...propertiesOf(params).map(([, schema]) => mostly(likely(schema), anyId)))
    .map(([id]) => path.replace(/\{\w+\}/, encode(id)))
  const pairs = propertiesOf(query).map(([name, schema]) =>
    fc.tuple(fc.constant(name), mostly(likely(schema), anyText)),
  )
  const search = fc
    .array(fc.oneof(...pairs, fc.tuple(anyText, anyText)), { maxLength: 4 })
    .map((given) => given.map((pair) => pair.map(encode).join('=')).join('&'))
  const authorization = fc.oneof(
    { weight: 12, arbitrary: fc.constantFrom(keys[0], ...keys).map(bearer) },
    { weight: 12, arbitrary: fc.constant(bearer(keys[0])) },
    { weight: 1, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary: headerText.map(bearer) },
    { weight: 1, arbitrary: headerText },
  )
  const others = fc.oneof(
    ...propertiesOf(headers).map(([name]) => fc.tuple(fc.constant(name), mostly(fc.constant('same'), headerText))),
    fc.tuple(fc.constant('X-Request-Id'), headerText),
  )
  const { host } = new URL(gateway.url)
  return fc
    .record({
      pathname,
      search,
      authorization,
      hosts: fc.oneof(
        { weight: 30, arbitrary: fc.constant([host]) },
        { weight: 1, arbitrary: fc.constant([host, host]) },
      ),
      type: body ? mostly(fc.constant('application/json'), headerText) : fc.constant(undefined),
      others: fc.array(others, { maxLength: 2 }),
      text: body ? bodyOf(body) : fc.constant(undefined),
    })
    .map((parts) => {
      const { text } = parts
      const target = parts.search === '' ? parts.pathname : `${parts.pathname}?${parts.search}`
      const given = [
        ...parts.hosts.map((each) => ['Host', each]),
        ['Content-Length', text === undefined ? undefined : Buffer.byteLength(text)],
        ['Authorization', parts.authorization],
        ['Content-Type', parts.type],
        ...parts.others,
        ['Connection', 'close'],
      ].filter(([, value]) => value !== undefined)
      const lines = [`${method.toUpperCase()} ${target} HTTP/1.1`, ...given.map((header) => header.join(': '))]
      const head = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1')
      return { operation, target, bytes: Buffer.concat([head, Buffer.from(text ?? '')]) }
    })
}

const bearer = (key: string | undefined) => `Bearer ${key}`
const anyText = fc.string({ unit: anyCharacter, maxLength: 20 })
const headerText = fc.string({
  unit: fc
    .integer({ min: 0x20, max: 0xff })
    .filter((code) => code !== 0x7f)
    .map((code) => String.fromCodePoint(code)),
  maxLength: 300,
})

function mostly<Value>(usual: fc.Arbitrary<Value>, seldom: fc.Arbitrary<Value>): fc.Arbitrary<Value> {
  return fc.oneof({ weight: 5, arbitrary: usual }, { weight: 1, arbitrary: seldom })
}

/** Generates bodies: objects with likely and unlikely values, other JSON, and text that is not JSON. */
function bodyOf(schema: object): fc.Arbitrary<string | undefined> {
  const values = Object.fromEntries(
    propertiesOf(schema).map(([name, property]) => [name, mostly(likely(property), fc.jsonValue())]),
  )
  const object = fc.record(values, { requiredKeys: [] }).map((value) => JSON.stringify(value))
  return fc.oneof(
    { weight: 8, arbitrary: object },
    { weight: 1, arbitrary: fc.json() },
    { weight: 1, arbitrary: fc.string({ unit: anyCharacter, maxLength: 50 }) },
    { weight: 1, arbitrary: fc.constant(undefined) },
  )
}

/** Generates values that the schema accepts, or nearly. */
function likely(schema: Schema): fc.Arbitrary<unknown> {
  const types = [schema.type ?? 'string'].flat()
  if (schema.format === 'uuid') {
    return fc.oneof(fc.constantFrom<unknown>(...ids, ...(types.includes('null') ? [null, null] : [])), fc.uuid())
  }
  if (types.includes('integer')) {
    const { minimum = 0, maximum = 1_000 } = schema
    return fc.integer({ min: minimum - 1, max: maximum + 1 })
  }
  const { minLength = 0, maxLength = 100 } = schema
  return fc.oneof(
    fc.string({ unit: anyCharacter, minLength, maxLength: Math.min(maxLength, 200) }),
    fc.string({ unit: 'grapheme', maxLength: 30 }),
    fc.constantFrom('go', ' ', '%', 'x'.repeat(maxLength), 'x'.repeat(maxLength + 1)),
  )
}

/** Percent-encodes a value; a lone surrogate, which has no encoding, becomes U+FFFD. */
function encode(value: unknown): string {
  return encodeURIComponent(String(value).toWellFormed())
}
