import { describe, expect, test } from '@jest/globals'
import { describeAppApi } from './openapi.ts'
import { APP_OPERATIONS, type AppOperation, isOpen } from './operations.ts'

interface Document {
  paths: Record<string, Record<string, { security?: object[]; description: string }>>
}

describe("the OpenAPI document of the application's API", () => {
  test('needs the cookie for exactly the operations that need a sign-in', () => {
    const { paths } = describeAppApi() as unknown as Document
    for (const operation of Object.values<AppOperation>(APP_OPERATIONS)) {
      const { path, method } = operation
      expect([path, method, paths[path]?.[method]?.security]).toEqual([
        path,
        method,
        isOpen(operation) ? [] : undefined,
      ])
    }
  })
})
