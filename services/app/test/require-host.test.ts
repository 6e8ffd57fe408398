import { beforeAll, expect, test } from '@jest/globals'
import { sendRaw } from '@workflow-service/testkit'
import { useTestApp } from './support/test-app.ts'

const app = useTestApp()
let [named, unnamed] = ['', '']

beforeAll(async () => {
  named = (await app.startAnother({ appUrl: 'https://app.acme.test', trustProxy: 1 })).url
  unnamed = (await app.startAnother({ appUrl: undefined })).url
})

async function statusAt(url: string, host: string, path = '/app/setup', more = ''): Promise<string> {
  const answer = await sendRaw(url, `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n${more}Connection: close\r\n\r\n`)
  if (answer?.status !== 421) return String(answer?.status)
  const { error } = JSON.parse(answer.text) as { error: { code: string; message: string; request_id: string } }
  expect(error.request_id).toBe(answer.headers['x-request-id'])
  return `421 ${error.code}: ${error.message}`
}

test.each(['app.acme.test', 'APP.acme.test:8443', 'localhost', 'localhost:1', '127.0.0.1:80', '127.1.2.3', '[::1]:80'])(
  'answers at the host %s',
  async (host) => expect(await statusAt(named, host)).toBe('200'),
)

test.each([
  'evil.test',
  'app.acme.test.evil.test',
  'evil.test:app.acme.test',
  '127.0.0.1.evil.test',
  'localhost.',
  '10.0.0.1',
  'app.acme.test@evil.test',
  '',
])('refuses every path at the host %j, except that of the health check', async (host) => {
  for (const path of ['/', '/app/setup', '/app/openapi.json', '/app/me', '/nothing']) {
    expect(await statusAt(named, host, path)).toBe(
      '421 misdirected_request: The application is at https://app.acme.test, and answers at no other host. ' +
        'Open it there, or set APP_URL; a proxy must pass Host on.',
    )
  }
  expect(await statusAt(named, host, '/healthz')).toBe('200')
})

test('a page of another host cannot name the own one', async () => {
  expect(await statusAt(named, 'evil.test', '/app/setup', 'X-Forwarded-Host: app.acme.test\r\n')).toMatch(/^421 /)
})

test('without APP_URL it answers on its own machine only, and says what to do', async () => {
  expect(await statusAt(unnamed, 'localhost')).toBe('200')
  expect(await statusAt(unnamed, 'app.acme.test')).toMatch(/ set it to the address that people type\.$/)
})
