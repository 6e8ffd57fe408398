import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { Agent, request as httpsRequest } from 'node:https'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { startCustomerEndpoint, type CustomerEndpoint } from './start-customer-endpoint.ts'
import { createCertificate } from './create-certificate.ts'

let endpoint: CustomerEndpoint

beforeEach(async () => {
  endpoint = await startCustomerEndpoint()
})

afterEach(async () => {
  await endpoint.close()
})

describe('startCustomerEndpoint', () => {
  test('records a request as it arrived', async () => {
    const answer = await fetch(`${endpoint.url}/hook?a=1`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'X-Service-Token': 'abc' },
      body: '{ "order": 1 }',
    })
    expect(answer.status).toBe(204)
    expect(endpoint.requests).toMatchObject([
      {
        method: 'POST',
        path: '/hook?a=1',
        headers: { 'content-type': 'application/json', 'x-service-token': 'abc' },
        text: '{ "order": 1 }',
        json: { order: 1 },
      },
    ])
    expect(endpoint.requests[0]?.body).toEqual(Buffer.from('{ "order": 1 }'))
  })

  test('answers every request with the given status, headers and body', async () => {
    endpoint.answerWith({ status: 422, headers: { 'x-reason': 'size' }, body: { error: 'too big' } })
    const answer = await fetch(endpoint.url)
    expect([answer.status, answer.headers.get('x-reason'), await answer.json()]).toEqual([
      422,
      'size',
      { error: 'too big' },
    ])
    expect((await fetch(endpoint.url)).status).toBe(422)
  })

  test('answers by the request and the number of requests before it', async () => {
    endpoint.answerWith(({ path }, index) => ({ body: `${path} ${index}` }))
    expect(await (await fetch(`${endpoint.url}/a`)).text()).toBe('/a 0')
    expect(await (await fetch(`${endpoint.url}/b`)).text()).toBe('/b 1')
  })

  test('answers by path', async () => {
    const routed = await startCustomerEndpoint({ answer: { status: 201 }, paths: { '/gone': { status: 410 } } })
    expect((await fetch(`${routed.url}/gone?now`)).status).toBe(410)
    expect((await fetch(`${routed.url}/there`)).status).toBe(201)
    await routed.close()
  })

  test('counts requests that it does not keep', async () => {
    const forgetful = await startCustomerEndpoint({
      keepsRequests: false,
      answer: (_request, index) => ({ body: `${index}` }),
    })
    await fetch(forgetful.url)
    expect(await (await fetch(forgetful.url)).text()).toBe('1')
    expect(forgetful.requests).toEqual([])
    await forgetful.close()
  })

  test('redirects', async () => {
    endpoint.answerWith({ redirect: 'http://elsewhere.test/', status: 307 })
    const answer = await fetch(endpoint.url, { redirect: 'manual' })
    expect([answer.status, answer.headers.get('location')]).toEqual([307, 'http://elsewhere.test/'])
  })

  test('resets the connection', async () => {
    endpoint.answerWith('reset')
    await expect(fetch(endpoint.url)).rejects.toMatchObject({ cause: { code: 'ECONNRESET' } })
  })

  test('closes while a request hangs', async () => {
    endpoint.answerWith('hang')
    const hanging = fetch(endpoint.url).catch((error: Error) => error.message)
    await endpoint.waitForRequests(1)
    await endpoint.close()
    expect(await hanging).toBe('fetch failed')
  })

  test('answers 599 when the answering function throws', async () => {
    endpoint.answerWith(() => {
      throw new Error('a mistake in the test')
    })
    const answer = await fetch(endpoint.url)
    expect([answer.status, await answer.text()]).toEqual([599, 'Error: a mistake in the test'])
  })

  test('rejects with the number of requests when fewer than expected arrive', async () => {
    await fetch(endpoint.url)
    await expect(endpoint.waitForRequests(2, 30)).rejects.toThrow(
      "Waited 30 ms for 2 requests at the customer's endpoint; 1 arrived",
    )
  })

  test('serves HTTPS with the given certificate', async () => {
    const certificate = await createCertificate()
    const secure = await startCustomerEndpoint({ tls: certificate, answer: { body: 'hello' } })
    const sent = httpsRequest(secure.url, { agent: new Agent({ ca: certificate.cert }) }).end()
    const [answer] = (await once(sent, 'response')) as [IncomingMessage]
    expect(answer.statusCode).toBe(200)
    answer.resume()
    await secure.close()
  })
})
