import { createServiceToken } from '@workflow-service/webhook-token'
import { freePort } from '@workflow-service/testkit'
import got from 'got'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { type ArrivedWebhook, type DemoEndpoint, isDemoEndpoint, startDemoEndpoint } from './demo-endpoint.ts'

const secret = 'a signing secret'
let endpoint: DemoEndpoint
let arrived: ArrivedWebhook[]
const onWebhook = (webhook: ArrivedWebhook) => arrived.push(webhook)

beforeEach(async () => {
  arrived = []
  endpoint = await startDemoEndpoint({ port: 0, secret, onWebhook })
})
afterEach(async () => await endpoint.close())

const post = async (body: object | string, headers = { 'X-Service-Token': createServiceToken(secret) }) => {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return await got.post(endpoint.url, { body: text, headers, throwHttpErrors: false, retry: { limit: 0 } })
}

describe('the demo endpoint', () => {
  test('confirms a verification request and shows nothing of it', async () => {
    const answer = await post({ type: 'service.webhook.verification', data: {} })
    expect(answer.statusCode).toBe(204)
    expect(arrived).toEqual([])
  })

  test('takes an order and shows it as it arrived', async () => {
    const answer = await post({ order_id: 'A-1' })
    expect(answer).toMatchObject({ statusCode: 200, body: 'Order A-1 is in.' })
    expect(arrived).toMatchObject([
      { method: 'POST', url: endpoint.url, body: '{"order_id":"A-1"}', token: { ok: true }, answer: { status: 200 } },
    ])
    expect(arrived[0]?.headers.map(([name]) => name)).toContain('x-service-token')
  })

  test.each<[string, object | string]>([
    ['without an id', { order_id: '' }],
    ['that is no JSON', 'order'],
    ['that is null', 'null'],
  ])('refuses an order %s', async (_what, body) => {
    expect((await post(body)).statusCode).toBe(422)
  })

  test('answers 401 to whoever does not know the secret, verifications included', async () => {
    for (const body of [{ order_id: 'A-1' }, { type: 'service.webhook.verification' }]) {
      expect((await post(body, { 'X-Service-Token': createServiceToken('another') })).statusCode).toBe(401)
    }
    expect(arrived.map(({ token }) => token)).toEqual([
      { ok: false, reason: 'wrong_signature' },
      { ok: false, reason: 'wrong_signature' },
    ])
  })

  test('listens where it listened before, or elsewhere when that port is taken', async () => {
    const port = await freePort()
    const first = await startDemoEndpoint({ port, secret, onWebhook })
    expect(first.port).toBe(port)
    const second = await startDemoEndpoint({ port, secret, onWebhook })
    expect(second.port).not.toBe(port)
    await Promise.all([first.close(), second.close()])
  })

  test('knows its own addresses', () => {
    expect(isDemoEndpoint(endpoint.url)).toBe(true)
    expect(isDemoEndpoint('http://127.0.0.1:9/other')).toBe(false)
    expect(isDemoEndpoint('https://acme.example/orders')).toBe(false)
  })
})
