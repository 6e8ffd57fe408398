import { describe, expect, test } from '@jest/globals'
import { Ajv2020 } from 'ajv/dist/2020.js'
import * as app from './app/index.ts'
import * as contract from './index.ts'
import * as manifest from './manifest.ts'

interface ObjectSchema {
  title?: string
  description?: string
  properties: Record<string, { description?: string }>
  additionalProperties?: unknown
}

const exported: [string, unknown][] = Object.entries({ ...contract, ...app, ...manifest })
const schemas = exported.filter((entry): entry is [string, ObjectSchema] => isObjectSchema(entry[1]))
/** Unknown query parameters and headers are ignored; unknown fields of a body are refused. */
const closedSchemas = schemas.filter(([name]) => !name.endsWith('Query'))

// Services skip this validation at boot to start faster.
const metaSchema = new Ajv2020({ strict: false })

function isObjectSchema(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'properties' in value && 'type' in value
}

describe('every schema of the contract', () => {
  test('is covered by these tests', () => {
    expect(schemas.map(([name]) => name)).toEqual(
      expect.arrayContaining([
        'WorkflowOut',
        'WorkflowStartIn',
        'ErrorResponse',
        'DeliveryIn',
        'SessionMessage',
        'OverviewOut',
        'Manifest',
      ]),
    )
  })

  test.each(schemas)('%s is a valid JSON Schema 2020-12', (_name, schema) => {
    expect(metaSchema.validateSchema(schema)).toBe(true)
  })

  test.each(schemas)('%s has a title and a description', (_name, schema) => {
    expect(schema.title).toBeTruthy()
    expect(schema.description).toBeTruthy()
  })

  test.each(closedSchemas)('%s refuses unknown fields', (_name, schema) => {
    expect(schema.additionalProperties).toBe(false)
  })

  test.each(schemas)('%s describes each property', (_name, schema) => {
    const undescribed = Object.entries(schema.properties).filter(([, { description }]) => !description)
    expect(undescribed).toEqual([])
  })
})
