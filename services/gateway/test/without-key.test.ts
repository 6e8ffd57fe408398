import { readFile } from 'node:fs/promises'
import { registerHooks } from 'node:module'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from '@jest/globals'
import { describePublicApi, ERROR_STATUSES, type Operation, OPERATIONS } from '@workflow-service/contract'
import { sendRaw } from '@workflow-service/testkit'
import { useTestGateway } from './support/test-gateway.ts'

const committed = fileURLToPath(new URL('../openapi.json', import.meta.url))
const gateway = useTestGateway()

async function serversFor(url: string, host: string): Promise<string[]> {
  const response = await sendRaw(url, `GET /v1/openapi.json HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
  const { servers } = JSON.parse(response?.text ?? '') as { servers: { url: string }[] }
  return servers.map((server) => server.url)
}

function headersOf({ headers, status }: Response): unknown[] {
  const names = ['content-type', 'content-length', 'content-encoding', 'cache-control']
  return [status, ...names.map((name) => headers.get(name))]
}

test('the OpenAPI document is the committed openapi.json; `pnpm --filter @workflow-service/gateway openapi` updates it', async () => {
  const response = await fetch(`${gateway.url}/v1/openapi.json`)
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toMatch(/^application\/json/)
  const served: unknown = await response.json()
  expect(JSON.parse(await readFile(committed, 'utf8'))).toEqual(describePublicApi())
  expect(served).toEqual(describePublicApi(gateway.url))
})

test("the OpenAPI document names API_URL without a slash at the end, or else its own place, never the caller's Host", async () => {
  for (const host of ['evil.test', '"<script>']) expect(await serversFor(gateway.url, host)).toEqual([gateway.url])
  const behindProxy = await gateway.startAnother({ apiUrl: 'https://api.acme.test/automation' })
  expect(await serversFor(behindProxy.url, 'internal:8080')).toEqual(['https://api.acme.test/automation'])
})

test('the OpenAPI document is version 1.0.0 and declares the success and the error statuses of each operation', () => {
  const { info, paths } = describePublicApi() as {
    info: { version: string }
    paths: Record<string, Record<string, { operationId: string; responses: object }>>
  }
  expect(info.version).toBe('1.0.0')
  const declared = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { responses }]) => [`${method} ${path}`, Object.keys(responses).map(Number)]),
  )
  // The contract declares every status for its four operations; the additions conflict with nothing.
  const expected = Object.values<Operation>(OPERATIONS).map(({ method, path, success, isAddition }) => [
    `${method} ${path}`,
    [success.status, ...ERROR_STATUSES.filter((status) => !isAddition || status !== 409)],
  ])
  expect(Object.fromEntries(declared)).toEqual(Object.fromEntries(expected))
})

describe('the reference page', () => {
  const HTML = { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }

  // Before all others: what is loaded once stays loaded.
  test('is shown after it could not be loaded, such as without free file descriptors', async () => {
    const hooks = registerHooks({
      load: (url, context, nextLoad) => {
        if (url.endsWith('/render-reference.ts')) throw new Error('EMFILE: too many open files')
        return nextLoad(url, context)
      },
    })
    expect((await fetch(`${gateway.url}/docs`)).status).toBe(500)
    hooks.deregister()
    expect((await fetch(`${gateway.url}/docs`)).status).toBe(200)
  })

  test('is one file of less than 40 KB as sent, whose policy allows its own style and scripts alone', async () => {
    const page = await fetch(`${gateway.url}/docs`, { headers: { 'Accept-Encoding': 'gzip, br' } })
    const html = await page.text()
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    const policy = page.headers.get('content-security-policy') ?? ''
    expect(policy).toMatch(/^default-src 'none'; script-src 'sha256-[^']+'; style-src 'sha256-[^']+'; img-src data:;/)
    expect(policy).not.toContain('unsafe')
    expect(html).not.toMatch(/<(?:script|link|img)[^>]* (?:src|href)="(?!data:)/)
    expect(page.headers.get('content-encoding')).toBe('br')
    expect(Number(page.headers.get('content-length'))).toBeLessThan(40_000)
  })

  test('is where a browser gets from / and /docs/; to other callers these paths are unknown', async () => {
    const html = await (await fetch(`${gateway.url}/docs`)).text()
    for (const path of ['/', '/docs/']) {
      const page = await fetch(`${gateway.url}${path}`, { headers: HTML })
      expect([path, page.status, await page.text()]).toEqual([path, 200, html])
      expect(page.headers.get('vary')).toContain('Accept')
      expect((await gateway.get(path)).status).toBe(404)
    }
    expect((await fetch(`${gateway.url}/docs/x`, { headers: HTML })).status).toBe(401)
  })

  test('HEAD has the headers of GET, as of the other public paths', async () => {
    for (const path of ['/docs', '/v1/openapi.json', '/healthz']) {
      const head = await fetch(`${gateway.url}${path}`, { method: 'HEAD' })
      const get = await fetch(`${gateway.url}${path}`)
      expect(headersOf(head)).toEqual(headersOf(get))
      for (const name of ['content-length', 'x-request-id']) expect(head.headers.get(name)).not.toBeNull()
    }
  })

  test('and the other public paths answer only statuses of the contract to conditional and range requests', async () => {
    const conditions: [name: string, value: string][] = [
      ['If-None-Match', '*'],
      ['If-Modified-Since', 'Fri, 01 Jan 2100 00:00:00 GMT'],
      ['Range', 'bytes=5-1'],
      ['Range', 'bytes=0-5'],
    ]
    for (const header of conditions) {
      for (const path of ['/docs', '/v1/openapi.json', '/healthz']) {
        const { status, headers } = await fetch(`${gateway.url}${path}`, { headers: [header] })
        const others = ['etag', 'last-modified', 'x-powered-by'].filter((name) => headers.has(name))
        expect([path, ...header, status, others]).toEqual([path, ...header, 200, []])
      }
    }
    expect((await fetch(`${gateway.url}/docs`, { method: 'POST' })).status).toBe(401)
  })
})

test('the metrics port does not serve the API', async () => {
  const headers = { Authorization: `Bearer ${gateway.organization.key}` }
  expect((await fetch(`${gateway.metricsUrl}/v1/organization`, { headers })).status).toBe(404)
})

test('the metrics port counts requests by operation and status, starts by outcome, and session messages', async () => {
  const workflow = await gateway.createWorkflow()
  await gateway.start(workflow.id, { context: 'go' })
  await gateway.get('/nowhere')
  const text = await (await fetch(`${gateway.metricsUrl}/metrics`)).text()
  const lines = [
    'gateway_request_duration_seconds_count{service="gateway",operation="startWorkflow",status="202"} 1',
    'gateway_request_duration_seconds_count{service="gateway",operation="none",status="404"} ',
    'gateway_starts_total{kind="accepted",service="gateway"} 1',
    'gateway_wake_ups_total{outcome="confirmed",service="gateway"} 1',
    'gateway_start_batch_size_count{service="gateway"} 1',
    'gateway_broker_up{service="gateway"} 1',
    'process_cpu_seconds_total{',
  ]
  expect(lines.filter((line) => !text.includes(`\n${line}`))).toEqual([])
})
