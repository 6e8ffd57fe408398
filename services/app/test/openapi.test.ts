import { expect, test } from '@jest/globals'
import { describeAppApi } from '@workflow-service/contract/app'
import { useTestApp } from './support/test-app.ts'

const app = useTestApp()

test('Anyone can read the OpenAPI document, whose server is the application', async () => {
  const answer = await fetch(new URL('/app/openapi.json', app.url))
  expect(answer.status).toBe(200)
  expect(await answer.json()).toEqual(describeAppApi(app.config.appUrl ?? app.url))
})
