import { describe, expect, test } from '@jest/globals'
import { Ajv2020 } from 'ajv/dist/2020.js'
import * as app from './app/index.ts'
import * as contract from './index.ts'
import * as manifest from './manifest.ts'
import { TRIMMED_FORMATS } from './schema/ajv.ts'

interface ObjectSchema {
  title?: string
  description?: string
  properties: Record<string, { description?: string }>
  additionalProperties?: unknown
}

const exported: [string, unknown][] = Object.entries({ ...contract, ...app, ...manifest })
const schemas = exported.filter((entry): entry is [string, ObjectSchema] => isObjectSchema(entry[1]))
/** Bodies: query parameters have no title, and unknown ones are ignored. */
const closedSchemas = schemas.filter(([name]) => !name.endsWith('Query'))

// Services skip this validation at boot to start faster.
const metaSchema = new Ajv2020({ strict: false })

function isObjectSchema(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'properties' in value && 'type' in value
}

describe('every schema of the contract', () => {
  test('is a valid JSON Schema 2020-12', () => {
    expect(schemas.length).toBeGreaterThan(150)
    expect(namesOf(schemas, (schema) => metaSchema.validateSchema(schema) !== true)).toEqual([])
  })

  test('has a title and a description, and refuses unknown fields', () => {
    expect(namesOf(closedSchemas, ({ title, description }) => !title || !description)).toEqual([])
    expect(namesOf(closedSchemas, ({ additionalProperties }) => additionalProperties !== false)).toEqual([])
  })

  test('describes each property', () => {
    expect(namesOf(schemas, ({ properties }) => Object.values(properties).some((each) => !each.description))).toEqual(
      [],
    )
  })
})

function namesOf(entries: [string, ObjectSchema][], isWrong: (schema: ObjectSchema) => boolean): string[] {
  return entries.filter(([, schema]) => isWrong(schema)).map(([name]) => name)
}

describe('every text that a caller sends', () => {
  /** A key has one form, and a file at most 1 MiB. */
  const EXCEPTIONS = [
    'sendPayload body.journal.steps[].data',
    'saveFile body.content',
    'Manifest.api_keys[].key',
    'Manifest.workflows[].files[].content',
  ]
  const operations = { ...contract.OPERATIONS, ...contract.INTERNAL_OPERATIONS, ...app.APP_OPERATIONS }
  const requests = Object.values(operations).flatMap((operation) =>
    (['query', 'headers', 'body'] as const).map((part): [string, unknown] => [
      `${operation.id} ${part}`,
      (operation as Partial<Record<typeof part, unknown>>)[part],
    ]),
  )

  test('has at most 50,000 characters, with four exceptions', () => {
    const texts = [...requests, ['Manifest', manifest.Manifest] as const].flatMap(([name, schema]) =>
      listTexts(schema, name),
    )
    expect(texts.length).toBeGreaterThan(90)
    const longer = texts.filter(({ maxLength }) => maxLength > contract.WORKFLOW_TEXT_MAX_LENGTH)
    expect(longer.map(({ path }) => path)).toEqual(EXCEPTIONS)
    expect(contract.WORKFLOW_TEXT_MAX_LENGTH).toBe(50_000)
  })

  test.each<[api: string, table: Readonly<Record<string, object>>, trimmed: Record<string, string>]>([
    ['public', contract.OPERATIONS, { context: 'startWorkflow' }],
    [
      'internal',
      contract.INTERNAL_OPERATIONS,
      { key: 'saveModelKey', name: 'checkWebhookSource saveLookup saveWebhookSource', url: 'saveNoticeWebhook' },
    ],
    [
      'application',
      app.APP_OPERATIONS,
      {
        context: 'saveCase startWorkflow tryWorkflow',
        email: 'createUser createUserLink setUp signIn',
        first_name: 'createUser saveUser',
        key: 'saveModelKey',
        last_name: 'createUser saveUser',
        name:
          'acceptLink createApiKey createWorkflow duplicateWorkflow saveCase saveFile saveLookup saveMe ' +
          'saveOrganization saveTrigger saveWebhookSource saveWorkflow setUp',
        organization_name: 'setUp',
        reason: 'decideApprovals declineDelivery',
        search: 'createResendJob previewResends',
        text: 'saveInstructions',
        url: 'saveNoticeWebhook',
      },
    ],
  ])('is trimmed in these fields of bodies of the %s API', (_api, table, trimmed) => {
    const found: Record<string, string[]> = {}
    for (const [id, { body }] of Object.entries(table as Record<string, { body?: ValueSchema }>)) {
      for (const [name, schema] of Object.entries(body?.properties ?? {})) {
        if (TRIMMED_FORMATS.includes((schema as ValueSchema).format)) (found[name] ??= []).push(id)
      }
    }
    const ids = Object.entries(found).map(([name, own]) => [name, own.toSorted().join(' ')])
    expect(Object.fromEntries(ids)).toEqual(trimmed)
  })
})

interface ValueSchema {
  type?: string | string[]
  format?: string
  maxLength?: number
  enum?: unknown
  const?: unknown
  properties?: Record<string, unknown>
  items?: unknown
  anyOf?: unknown[]
}

function listTexts(schema: unknown, path: string): { path: string; maxLength: number }[] {
  if (typeof schema !== 'object' || schema === null) return []
  const { type, format = '', maxLength = Infinity, properties = {}, items, anyOf = [], ...rest } = schema as ValueSchema
  const isText = [type].flat().includes('string') && !('enum' in rest) && !('const' in rest)
  return [
    ...(isText && !['uuid', 'date-time'].includes(format) ? [{ path, maxLength }] : []),
    ...Object.entries(properties).flatMap(([name, value]) => listTexts(value, `${path}.${name}`)),
    ...listTexts(items, `${path}[]`),
    ...anyOf.flatMap((alternative) => listTexts(alternative, path)),
  ]
}
