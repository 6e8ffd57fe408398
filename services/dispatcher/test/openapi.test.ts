import SwaggerParser from '@apidevtools/swagger-parser'
import { describe, expect, test } from '@jest/globals'
import { describeInternalApi } from '@workflow-service/contract'

describe("the internal API's OpenAPI document", () => {
  test('is a valid OpenAPI 3.1 document', async () => {
    const document = structuredClone(describeInternalApi()) as never
    await expect(SwaggerParser.validate(document)).resolves.toMatchObject({ openapi: '3.1.0' })
  })

  test('has no keywords of our validator', () => {
    const text = JSON.stringify(describeInternalApi())
    expect(text).not.toContain('storable')
    expect(text).not.toContain('~kind')
  })
})
