import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { type IncomingMessage, request } from 'node:http'
import { once } from 'node:events'
import { expect, test } from '@jest/globals'
import { useTestApp } from './support/test-app.ts'

const app = useTestApp()
const SCRIPT = 'console.log("the page")\n'.repeat(100)

/** Reads an answer as it was sent: `fetch` would decompress it. */
async function get(path: string, headers: Record<string, string> = {}, method = 'GET') {
  const sent = request(`${app.url}${path}`, { method, headers }).end()
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  const chunks = await answer.toArray()
  return { status: answer.statusCode, headers: answer.headers, bytes: Buffer.concat(chunks as Buffer[]) }
}

const NAVIGATION = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }

test('Without a built page, a browser gets an explanation, and nothing else is answered with a page', async () => {
  const { status, headers, bytes } = await get('/', NAVIGATION)
  expect([status, headers['content-type']]).toEqual([503, 'text/plain; charset=utf-8'])
  expect(bytes.toString()).toContain('pnpm build:console')
  expect((await get('/assets/main.js')).status).toBe(404)

  // The page is found when it has been built meanwhile.
  mkdirSync(join(app.config.consoleFolder, 'assets'), { recursive: true })
  writeFileSync(join(app.config.consoleFolder, 'index.html'), '<!doctype html><title>The page</title>')
  writeFileSync(join(app.config.consoleFolder, 'assets', 'main-4f2a.js'), SCRIPT)
  for (const path of ['/', '/workflows/1', '/sign-in?next=%2F']) {
    const expected = { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-cache' }
    expect([path, await get(path, NAVIGATION)]).toMatchObject([path, { status: 200, headers: expected }])
  }
  for (const path of ['/assets/missing.js', '/../package.json', '/%2e%2e/package.json']) {
    expect([path, (await get(path)).status]).toEqual([path, 404])
  }
  expect((await get('/', NAVIGATION, 'POST')).status).toBe(404)
  expect((await get('/', NAVIGATION, 'HEAD')).bytes).toHaveLength(0)

  const plain = await get('/assets/main-4f2a.js')
  expect(plain.headers['cache-control']).toBe('public, max-age=31536000, immutable')
  const brotli = await get('/assets/main-4f2a.js', { 'accept-encoding': 'gzip, br' })
  const gzip = await get('/assets/main-4f2a.js', { 'accept-encoding': 'gzip, br;q=0' })
  const encodings = [plain, brotli, gzip].map(({ headers: { 'content-encoding': encoding } }) => encoding)
  expect(encodings).toEqual([undefined, 'br', 'gzip'])
  const texts = [plain.bytes, brotliDecompressSync(brotli.bytes), gunzipSync(gzip.bytes)].map(String)
  expect(texts).toEqual([SCRIPT, SCRIPT, SCRIPT])
})

test('Every answer has the security headers', async () => {
  for (const path of ['/', '/workflows', '/assets/missing.js', '/app/me', '/app/unknown', '/healthz']) {
    const { headers } = await get(path, NAVIGATION)
    expect([path, headers]).toMatchObject([
      path,
      {
        'content-security-policy': expect.stringMatching(/^default-src 'none';.*frame-ancestors 'none'/),
        'cross-origin-opener-policy': 'same-origin',
        'cross-origin-resource-policy': 'same-origin',
        'referrer-policy': 'no-referrer',
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'DENY',
        ...(path.startsWith('/app/') ? { 'cache-control': 'no-store' } : {}),
      },
    ])
    expect(headers['x-powered-by']).toBeUndefined()
  }
  const { headers } = await get('/', NAVIGATION)
  expect(headers['content-security-policy']).toBe(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  )
  expect(headers['strict-transport-security']).toBeUndefined()
  const { url } = await app.startAnother({ appUrl: 'https://workflows.example.com' })
  expect((await fetch(`${url}/`)).headers.get('strict-transport-security')).toBe('max-age=31536000')
})

test('Readiness and metrics are on a port of their own', async () => {
  expect((await fetch(`${app.metricsUrl}/readyz`)).status).toBe(200)
  expect((await fetch(`${app.metricsUrl}/metrics`)).status).toBe(200)
  for (const path of ['/readyz', '/metrics']) expect((await get(path)).status).toBe(404)
})
