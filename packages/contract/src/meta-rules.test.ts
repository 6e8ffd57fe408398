import { describe, expect, test } from '@jest/globals'
import * as contract from './index.ts'

interface SchemaNode {
  type?: string | string[]
  title?: string
  description?: string
  properties?: Record<string, SchemaNode>
  additionalProperties?: unknown
  items?: SchemaNode
}

const schemas = Object.entries(contract).filter(
  (entry): entry is [string, SchemaNode] =>
    typeof entry[1] === 'object' && entry[1] !== null && 'properties' in entry[1] && 'type' in entry[1],
)

describe('every schema of the contract', () => {
  test('is found by this test', () => {
    expect(schemas.map(([name]) => name)).toEqual(
      expect.arrayContaining(['WorkflowOut', 'WorkflowStartIn', 'ErrorResponse', 'DeliveryIn', 'SessionMessage']),
    )
  })

  test.each(schemas)('%s has a title, a description and no room for unknown fields', (name, schema) => {
    expect(schema.title).toBeTruthy()
    expect(schema.description).toBeTruthy()
    if (name !== 'WorkflowListQuery') expect(schema.additionalProperties).toBe(false)
  })

  test.each(schemas)('%s says of each property what it is', (_name, schema) => {
    for (const [property, node] of Object.entries(schema.properties ?? {})) {
      expect({ property, isDescribed: Boolean(node.description) }).toEqual({ property, isDescribed: true })
    }
  })
})
