import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createServiceToken } from '@workflow-service/webhook-token'
import { freePort } from '@workflow-service/testkit'
import got from 'got'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { type ReceivedWebhook, type DemoEndpoint, isDemoEndpoint, startDemoEndpoint } from './demo-endpoint.ts'

const secret = 'a signing secret'
let endpoint: DemoEndpoint
let received: ReceivedWebhook[]
const onWebhook = (webhook: ReceivedWebhook) => received.push(webhook)

beforeEach(async () => {
  received = []
  endpoint = await startDemoEndpoint({ port: 0, secret, onWebhook })
})
afterEach(async () => await endpoint.close())

const post = async (body: object | string, signedWith = secret) => {
  const headers = { 'X-Service-Token': await createServiceToken(signedWith) }
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return await got.post(endpoint.url, { body: text, headers, throwHttpErrors: false, retry: { limit: 0 } })
}

describe('the demo endpoint', () => {
  test('confirms a verification request and does not report it', async () => {
    const response = await post({ type: 'service.webhook.verification', data: {} })
    expect(response.statusCode).toBe(204)
    expect(received).toEqual([])
  })

  test.each<[string, object | string]>([
    ['without an id', { order_id: '' }],
    ['that is not JSON', 'order'],
    ['that is null', 'null'],
  ])('answers 422 to an order %s', async (_what, body) => {
    expect((await post(body)).statusCode).toBe(422)
  })

  test('answers 401 to a request with a wrong token, verification requests included', async () => {
    for (const body of [{ order_id: 'A-1' }, { type: 'service.webhook.verification' }]) {
      expect((await post(body, 'another')).statusCode).toBe(401)
    }
    expect(received).toEqual([])
  })

  test('listens on the given port, or on another one if that is taken', async () => {
    const port = await freePort()
    const first = await startDemoEndpoint({ port, secret, onWebhook })
    expect(first.port).toBe(port)
    const second = await startDemoEndpoint({ port, secret, onWebhook })
    expect(second.port).not.toBe(port)
    await Promise.all([first.close(), second.close()])
  })

  test("recognises its own URLs on any port by the id of the demo's webhook source", async () => {
    const demo = await readFile(join(import.meta.dirname, '../demo.yaml'), 'utf8')
    const [, sourceId] = /webhook_sources:\n  - id: (\S+)/.exec(demo) ?? []
    expect(endpoint.url.endsWith(`/${sourceId}`)).toBe(true)
    expect(isDemoEndpoint(endpoint.url)).toBe(true)
    expect(isDemoEndpoint(endpoint.url.replace(/:\d+/, ':9'))).toBe(true)
    expect(isDemoEndpoint('http://127.0.0.1:4000/orders')).toBe(false)
    expect(isDemoEndpoint('https://acme.example/orders')).toBe(false)
  })
})
