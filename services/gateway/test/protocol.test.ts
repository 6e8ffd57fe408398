import { beforeAll, describe, expect, test } from '@jest/globals'
import type { ErrorResponse } from '@workflow-service/contract'
import { openConnection, parseResponse, type RawResponse, sendRaw, waitUntil } from '@workflow-service/testkit'
import { contractProblems } from './support/call.ts'
import { useTestGateway } from './support/test-gateway.ts'

const gateway = useTestGateway()
let authorization: string

beforeAll(() => {
  authorization = `Authorization: Bearer ${gateway.organization.key}\r\n`
})

/** Returns status and code of a response, or how it breaks the contract. */
function outcomeOf(response: RawResponse | null): string {
  if (!response) return 'no response'
  const body = JSON.parse(response.text) as ErrorResponse
  const problems = contractProblems('GET', '/', { ...response, body })
  return problems.length > 0 ? problems.join('; ') : `${response.status} ${body.error.code}`
}
const idOf = async (id: string): Promise<string> =>
  String((await gateway.get('/v1/organization', { headers: { 'X-Request-Id': id } })).headers['x-request-id'])
const preflight = (url: string, origin: string) =>
  fetch(`${url}/v1/organization`, {
    method: 'OPTIONS',
    headers: {
      Origin: origin,
      'Access-Control-Request-Method': 'GET',
      'Access-Control-Request-Headers': 'authorization',
    },
  })
const head = (lines: string) =>
  `POST /v1/workflows/x/start HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${authorization}${lines}\r\n`
const request = (path: string, more = ''): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n${authorization}${more}\r\n`
const CLOSE = 'Connection: close\r\n'
const keptAt = async (url: string) => (await fetch(`${url}/healthz`)).headers.get('keep-alive')

describe('malformed requests', () => {
  test.each<[what: string, bytes: string | Buffer]>([
    ['a TLS handshake', Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x0d, 0x0a, 0x0d, 0x0a])],
    ['an unknown method', 'FETCH /v1/organization HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['a target with bytes beyond ASCII', Buffer.from('GET /v1/\xff HTTP/1.1\r\nHost: x\r\n\r\n', 'latin1')],
    ['a target over 16 KiB', `GET /${'x'.repeat(17_000)} HTTP/1.1\r\nHost: x\r\n\r\n`],
    ['two lengths', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab'],
    [
      'a length and chunks',
      'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    ['chunked twice', 'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n'],
    ['lines that end in LF alone', 'GET / HTTP/1.1\nHost: x\n\n'],
    ['a folded header', 'GET / HTTP/1.1\r\nHost: x\r\n a: b\r\n\r\n'],
    ['a target without a slash', 'GET x HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['an absolute target of another scheme', 'GET ftp://x/v1 HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['lines that end in CR alone', 'GET / HTTP/1.1\rHost: x\r\r'],
    ['a header with a space before its colon', 'GET / HTTP/1.1\r\nHost: x\r\na : b\r\n\r\n'],
    ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ])('%s is answered 400', async (_what, bytes) => {
    expect(outcomeOf(await sendRaw(gateway.url, bytes))).toBe('400 invalid_request')
  })

  test.each([
    ['half a request line', 'GE', '400 invalid_request'],
    ['half of the headers', 'GET / HTTP/1.1\r\nHost: x\r\nA', '400 invalid_request'],
    ['nothing', '', 'no response'],
    ['a complete request', 'GET / HTTP/1.1\r\nHost: x\r\n\r\n', '401 unauthorized'],
  ])('%s and then the end of the connection', async (_what, bytes, expected) => {
    const connection = await openConnection(gateway.url)
    connection.socket.end(bytes)
    expect(outcomeOf(parseResponse(await connection.ended))).toBe(expected)
  })

  test('CONNECT is answered 404', async () => {
    const bytes = 'CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n'
    expect(outcomeOf(await sendRaw(gateway.url, bytes))).toBe('404 not_found')
  })

  test('are counted and logged, and do not affect other connections', async () => {
    await sendRaw(gateway.url, 'hello\r\n\r\n')
    const metrics = await (await fetch(`${gateway.metricsUrl}/metrics`)).text()
    expect(metrics).toMatch(/gateway_refusals_total\{code="invalid_request",[^}]*\} [1-9]/)
    expect(gateway.logLines.some(({ msg }) => msg === 'request.refused')).toBe(true)
    expect((await gateway.get('/v1/organization')).status).toBe(200)
  })
})

describe('unusual requests', () => {
  test.each<[what: string, lines: string]>([
    ['HTTP/1.0 without Host', `GET /nowhere HTTP/1.0\r\n`],
    ['an unknown expectation', `GET /nowhere HTTP/1.1\r\nHost: x\r\nExpect: the-unexpected\r\n${CLOSE}`],
    ['an upgrade', 'GET /nowhere HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n'],
    ['an absolute target', `GET http://x/nowhere HTTP/1.1\r\nHost: x\r\n${CLOSE}`],
    ['an absolute target with only a query', `GET http://x?a=1 HTTP/1.1\r\nHost: x\r\n${CLOSE}`],
    ['an absolute target with a host that is no URL', `GET http://[/a HTTP/1.1\r\nHost: x\r\n${CLOSE}`],
    ['an empty Host', `GET /nowhere HTTP/1.1\r\nHost:\r\n${CLOSE}`],
    ['empty lines before the request', `\r\n\r\nGET /nowhere HTTP/1.1\r\nHost: x\r\n${CLOSE}`],
    ['the target *', `OPTIONS * HTTP/1.1\r\nHost: x\r\n${CLOSE}`],
    ['1,000 headers', `GET /nowhere HTTP/1.1\r\nHost: x\r\n${CLOSE}${'a: b\r\n'.repeat(997)}`],
    ['TRACE', `TRACE /v1/organization HTTP/1.1\r\nHost: x\r\n${CLOSE}`],
    ['a method of WebDAV', `PROPFIND /v1/organization HTTP/1.1\r\nHost: x\r\n${CLOSE}`],
  ])('%s', async (_what, lines) => {
    const response = await sendRaw(gateway.url, Buffer.from(`${lines}${authorization}\r\n`, 'latin1'))
    expect(outcomeOf(response)).toBe('404 not_found')
  })

  test('a path or a query that is not percent-encoded UTF-8', async () => {
    const paths = ['%', '%zz', '%f', '%ff', '%c3%28', '%ed%a0%80'].map((id) => `/v1/workflows/${id}`)
    for (const target of [
      ...paths,
      ...['search=%zz', 'search=%ED%A0%80', '%ff=1'].map((it) => `/v1/workflows?${it}`),
    ]) {
      const response = await sendRaw(gateway.url, request(target, CLOSE))
      expect([target, outcomeOf(response)]).toEqual([target, '400 invalid_request'])
    }
  })
})

describe('methods and paths', () => {
  const paths = ['/v1/organization', '/v1/workflows', '/v1/workflows/01890a5d-ac96-774b-bcce-b302099a8057']
  test('an operation has one method', async () => {
    for (const method of ['PUT', 'PATCH', 'DELETE', 'OPTIONS', 'HEAD']) {
      for (const path of [...paths, `${paths[2]}/start`]) expect((await gateway.call(method, path)).status).toBe(404)
    }
    for (const path of paths) expect((await gateway.call('POST', path)).status).toBe(404)
    expect((await gateway.get(`${paths[2]}/start`)).status).toBe(404)
  })

  test.each([
    '/',
    '/v1',
    '/v1/',
    '/v1/organization/',
    '/v1//organization',
    '/V1/organization',
    '/v1/Organization',
    '/v1/organization%2F',
    '/v1/workflows/',
    '/v1/workflows//start',
    '/v1/workflows/x/y',
    '/v2/organization',
    '/v1/../v1/organization',
    '/readyz',
    '/metrics',
    '/docs/',
    '/docs/../package.json',
    '/docs/reference.js',
    '/docs/%2e%2e/package.json',
    '/favicon.ico',
  ])('GET %s is not found', async (path) => {
    // Sent as raw bytes: HTTP clients normalize paths.
    expect(outcomeOf(await sendRaw(gateway.url, request(path, CLOSE)))).toBe('404 not_found')
  })
})

describe('request bodies', () => {
  test('malformed chunks are answered 400', async () => {
    const bytes = `${head('Transfer-Encoding: chunked\r\n')}zz\r\nhello\r\n`
    expect(outcomeOf(await sendRaw(gateway.url, bytes))).toBe('400 invalid_request')
  })

  test.each([
    ['Chunked', '422 validation_error', ''],
    ['gzip, chunked', '400 unsupported_media_type', 'without a Transfer-Encoding other than'],
  ])('a body in the transfer coding %s is answered %s', async (coding, expected, advice) => {
    const bytes = `${head(`Transfer-Encoding: ${coding}\r\n${CLOSE}`)}2\r\n{}\r\n0\r\n\r\n`
    const response = await sendRaw(gateway.url, bytes)
    expect(outcomeOf(response)).toBe(expected)
    expect(response?.text).toContain(advice)
  })

  test.each([
    ['before it arrives', 'Content-Length: 1000000000\r\n', ''],
    ['as soon as it is too large', 'Transfer-Encoding: chunked\r\n', `50000\r\n${' '.repeat(0x50000)}\r\n`],
  ])('a body is refused %s, and its connection is closed with the response', async (_when, lines, body) => {
    const connection = await openConnection(gateway.url)
    connection.write(head(lines) + body)
    const received = await connection.ended
    expect(outcomeOf(parseResponse(received))).toBe('400 body_too_large')
    expect(received).toContain('\r\nConnection: close\r\n')
  })

  test('a body that ends early is answered 400', async () => {
    const connection = await openConnection(gateway.url)
    connection.socket.end(`${head('Content-Length: 100\r\n')}{}`)
    expect(outcomeOf(parseResponse(await connection.ended))).toBe('400 invalid_request')
  })

  test('a caller that disconnects during the body causes no error', async () => {
    const connection = await openConnection(gateway.url)
    connection.write(`${head('X-Request-Id: half-way\r\nContent-Length: 100\r\n')}{"context":`)
    connection.socket.destroy()
    await connection.ended
    expect((await gateway.get('/v1/organization')).status).toBe(200)
    expect(gateway.logLines.filter(({ level }) => level === 'error')).toEqual([])
  })
})

describe('several requests on one connection', () => {
  test('an unused one of a proxy is kept longer than proxies keep theirs, 120 s, and one of strangers is not', async () => {
    const { url } = await gateway.startAnother({ trustProxy: 1 })
    expect([await keptAt(url), await keptAt(gateway.url)]).toEqual(['timeout=125', 'timeout=5'])
  })

  test.each([
    ['are answered in order', ['/v1/organization', '/nowhere', '/v1/workflows'], CLOSE, '', '200,404,200'],
    ['have their responses before that of a malformed one', ['/v1/workflows'], '', 'rubbish\r\n\r\n', '200,400'],
    ['have no response to bytes after the last one', ['/v1/organization'], CLOSE, 'rubbish\r\n\r\n', '200'],
  ])('%s', async (_what, paths, last, more, statuses) => {
    const connection = await openConnection(gateway.url)
    connection.write(paths.map((path, index) => request(path, paths[index + 1] ? '' : last)).join('') + more)
    const received = await connection.ended
    expect([...received.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status).join()).toBe(statuses)
  })
})

test('X-Request-Id is kept if it is plain and short, and is new otherwise', async () => {
  for (const id of ['req-1', 'a/b:c+d=e.f_g', 'x'.repeat(128)]) expect(await idOf(id)).toBe(id)
  for (const id of ['x'.repeat(129), 'a b', 'a"b', 'a,b']) expect(await idOf(id)).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7/)
})

test('X-Request-Id appears in errors and in the log', async () => {
  const { body } = await gateway.get('/nowhere', { headers: { 'X-Request-Id': 'find-me' } })
  expect(body.error.request_id).toBe('find-me')
  await waitUntil(() => gateway.logLines.some(({ request_id: id, status }) => id === 'find-me' && status === 404))
})

test('CORS is off by default', async () => {
  const response = await preflight(gateway.url, 'https://app.example')
  expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([401, null])
})

test('CORS allows pages of the configured origins and no others', async () => {
  const { url } = await gateway.startAnother({ corsOrigins: ['https://app.example', 'https://other.example'] })
  const allowed = await preflight(url, 'https://app.example')
  expect(allowed.status).toBe(200)
  expect(allowed.headers.get('access-control-allow-origin')).toBe('https://app.example')
  expect(allowed.headers.get('access-control-allow-headers')).toMatch(/authorization.*user-agent/i)
  expect(allowed.headers.get('access-control-allow-credentials')).toBeNull()
  expect(allowed.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
  // The page is kept by caches, which would give it to callers of other origins.
  const page = await fetch(`${url}/docs`, { headers: { Origin: 'https://app.example' } })
  expect([page.status, page.headers.get('access-control-allow-origin')]).toEqual([200, null])
  const response = await gateway.get('/v1/organization', { url, headers: { Origin: 'https://other.example' } })
  expect(response.headers['access-control-allow-origin']).toBe('https://other.example')
  expect(response.headers['access-control-expose-headers']).toContain('X-Request-Id')
  const error = await gateway.get('/v1/organization', { url, key: null, headers: { Origin: 'https://app.example' } })
  expect([error.status, error.headers['access-control-allow-origin']]).toEqual([401, 'https://app.example'])
  for (const origin of ['https://evil.example', 'https://app.example.evil', 'http://app.example', 'null']) {
    const refused = await preflight(url, origin)
    expect([refused.status, refused.headers.get('access-control-allow-origin')]).toEqual([401, null])
  }
})
