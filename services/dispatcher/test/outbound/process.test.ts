import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { createServer as createTlsServer } from 'node:tls'
import { promisify } from 'node:util'
import { describe, expect, test } from '@jest/globals'
import { createCertificate, listen, startCustomerEndpoint } from '@workflow-service/testkit'
import { useTestFolder } from '@workflow-service/testkit/use-test-folder'
import { nameServer, zoneOf } from './name-server.ts'

/** The URL of a module as JavaScript's string: a folder's name may have quotes. */
const outbound = (file: string): string => JSON.stringify(import.meta.resolve(`../../src/outbound/${file}`))

/** Runs the program and returns the JSON that it prints. */
async function run(program: string, env: Record<string, string>): Promise<unknown> {
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program], {
    env: { PATH: process.env['PATH'], ...env },
  })
  return JSON.parse(stdout)
}

describe('a hundred requests to endpoints of every kind', () => {
  test('leave no socket and no timer behind', async () => {
    const endpoint = await startCustomerEndpoint({ paths: { '/hang': 'hang', '/reset': 'reset' } })
    const server = await nameServer(zoneOf({ 'name.example.com': ['127.0.0.1'] }))
    const targets = [
      [`${endpoint.url}/`, 'answered', 60_000],
      [`${endpoint.url}/reset`, 'unreachable', 60_000],
      [`${endpoint.url}/hang`, 'timed_out', 500],
      [endpoint.url.replace('http:', 'https:'), 'unreachable', 60_000],
      ['http://10.0.0.1/', 'refused', 60_000],
      [`http://name.example.com:${endpoint.port}/`, 'answered', 60_000],
    ]
    const program = `
      import { createSendRequest } from ${outbound('send-request.ts')}
      import { parseSubnets } from ${outbound('parse-subnets.ts')}
      import { createResolver } from ${outbound('resolver.ts')}
      const resolver = createResolver({ servers: ['${server.address}'] })
      const send = createSendRequest({ allowedSubnets: parseSubnets('127.0.0.0/8'), resolver })
      const targets = ${JSON.stringify(targets)}
      const held = () => process.getActiveResourcesInfo().filter((kind) => /TCP|TLS|Timeout/.test(kind))
      const rounds = Array.from({ length: 20 }, () => targets).flat()
      const results = await Promise.all(rounds.map(([url, , deadlineMs]) => send({ url, body: '{}', headers: {}, deadlineMs })))
      // Node frees closed sockets one turn later.
      for (let turn = 0; turn < 100 && held().length > 0; turn++) await new Promise(setImmediate)
      const kinds = results.slice(0, targets.length).map(({ kind }) => kind)
      process.stdout.write(JSON.stringify({ kinds, held: held() }))
      process.exit()
    `
    const printed = await run(program, {})
    await Promise.all([endpoint.close(), server.close()])
    expect(printed).toEqual({ kinds: targets.map(([, kind]) => kind), held: [] })
  })
})

describe('the environment', () => {
  const folder = useTestFolder()
  test('adds certificate authorities, and changes no proxy, certificate check, parser or TLS version', async () => {
    let trapped = 0
    const trap = createServer((socket) => {
      trapped++
      socket.destroy()
    })
    const lax = createServer((socket) => {
      socket.on('error', () => undefined)
      socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nX-Nul: a\u0000b\r\nContent-Length: 0\r\n\r\n'))
    })
    const [named, given, unknown] = await Promise.all(
      ['named', 'given', 'unknown'].map((name) => createCertificate({ names: [name, '127.0.0.1'] })),
    )
    const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const
    const oldTls = createTlsServer({ ...given!, ...old }, (socket) => socket.end())
    oldTls.on('tlsClientError', () => undefined)
    const endpoints = await Promise.all(
      [undefined, named, given, unknown].map((tls) =>
        startCustomerEndpoint({ answer: { status: 200, body: 'ok' }, ...(tls ? { tls } : {}) }),
      ),
    )
    writeFileSync(join(folder, 'named.pem'), named!.cert)
    const proxy = `http://127.0.0.1:${await listen(trap)}`
    const names = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'http_proxy', 'https_proxy', 'all_proxy']
    const urls = [
      ...endpoints.map(({ url }) => url),
      `http://127.0.0.1:${await listen(lax)}`,
      `https://127.0.0.1:${await listen(oldTls)}`,
    ]
    const program = `
      import { createSendRequest } from ${outbound('send-request.ts')}
      import { parseSubnets } from ${outbound('parse-subnets.ts')}
      const allowedSubnets = parseSubnets('127.0.0.0/8')
      const send = createSendRequest({ allowedSubnets, ca: ${JSON.stringify(given!.cert)} })
      const results = ${JSON.stringify(urls)}.map((url) => send({ url, body: '{}', headers: {}, deadlineMs: 10_000 }))
      process.stdout.write(JSON.stringify(await Promise.all(results)))
    `
    const results = await run(program, {
      ...Object.fromEntries(names.map((name) => [name, proxy])),
      NODE_USE_ENV_PROXY: '1',
      NO_PROXY: '',
      NODE_TLS_REJECT_UNAUTHORIZED: '0',
      NODE_NO_WARNINGS: '1',
      NODE_OPTIONS: '--insecure-http-parser --tls-min-v1.0 --tls-cipher-list=DEFAULT@SECLEVEL=0',
      NODE_EXTRA_CA_CERTS: join(folder, 'named.pem'),
    })
    for (const server of [trap, lax, oldTls]) server.close()
    await Promise.all(endpoints.map((endpoint) => endpoint.close()))
    const answered = { kind: 'answered', status: 200, text: 'ok' }
    expect(results).toMatchObject([
      answered,
      answered,
      answered,
      { kind: 'unreachable', cause: 'tls', detail: expect.stringContaining('self-signed') },
      { kind: 'unreachable', cause: 'invalid_answer' },
      { kind: 'unreachable', cause: 'tls', detail: expect.stringContaining('no common TLS version') },
    ])
    expect(trapped).toBe(0)
    expect(endpoints.at(-1)?.requests).toEqual([])
  })
})
