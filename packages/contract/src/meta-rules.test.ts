import { describe, expect, test } from '@jest/globals'
import { Ajv2020 } from 'ajv/dist/2020.js'
import * as contract from './index.ts'

interface SchemaNode {
  type?: string | string[]
  title?: string
  description?: string
  properties?: Record<string, SchemaNode>
  additionalProperties?: unknown
  items?: SchemaNode
}

const exported: [string, unknown][] = Object.entries(contract)
const schemas = exported.filter((entry): entry is [string, SchemaNode] => isObjectSchema(entry[1]))
/** Query parameters that are not known are ignored (design section 5); a body's are refused. */
const closedSchemas = schemas.filter(([name]) => !name.endsWith('Query'))

// The instance that checks requests leaves this to the tests.
const metaSchema = new Ajv2020({ strict: false })

function isObjectSchema(value: unknown): value is SchemaNode {
  return typeof value === 'object' && value !== null && 'properties' in value && 'type' in value
}

describe('every schema of the contract', () => {
  test('is found by this test', () => {
    expect(schemas.map(([name]) => name)).toEqual(
      expect.arrayContaining(['WorkflowOut', 'WorkflowStartIn', 'ErrorResponse', 'DeliveryIn', 'SessionMessage']),
    )
  })

  test.each(schemas)('%s is a valid JSON Schema 2020-12', (_name, schema) => {
    expect(metaSchema.validateSchema(schema)).toBe(true)
  })

  test.each(schemas)('%s has a title and a description', (_name, schema) => {
    expect(schema.title).toBeTruthy()
    expect(schema.description).toBeTruthy()
  })

  test.each(closedSchemas)('%s has no room for unknown fields', (_name, schema) => {
    expect(schema.additionalProperties).toBe(false)
  })

  test.each(schemas)('%s says of each property what it is', (_name, schema) => {
    for (const [property, node] of Object.entries(schema.properties ?? {})) {
      expect({ property, isDescribed: Boolean(node.description) }).toEqual({ property, isDescribed: true })
    }
  })
})
