import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer as createTlsServer } from 'node:tls'
import { pathToFileURL } from 'node:url'
import { describe, expect, test } from '@jest/globals'
import { startCustomerEndpoint, createCertificate } from '@workflow-service/testkit'
import { nameServer, zoneOf } from './name-server.ts'
import { listenOn } from './post-to.ts'

const outbound = (file: string): string => pathToFileURL(join(import.meta.dirname, '../../src/outbound', file)).href

/** Sends one request from a new process with these variables, and returns the result. */
async function sendWith(env: Record<string, string>, url: string, ca?: string): Promise<unknown> {
  const program = `
    import { createSendRequest } from '${outbound('send-request.ts')}'
    import { parseSubnets } from '${outbound('parse-subnets.ts')}'
    const send = createSendRequest({ allowedSubnets: parseSubnets('127.0.0.0/8'), ca: ${JSON.stringify(ca)} })
    const request = { url: '${url}', body: '{}', headers: {}, deadlineMs: 10_000 }
    process.stdout.write(JSON.stringify(await send(request)))
  `
  return run(program, env)
}

/** Runs the program and returns the JSON that it prints. */
async function run(program: string, env: Record<string, string>): Promise<unknown> {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    env: { PATH: process.env['PATH'], ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let printed = ''
  child.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()))
  await once(child, 'close')
  return JSON.parse(printed)
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
      import { createSendRequest } from '${outbound('send-request.ts')}'
      import { parseSubnets } from '${outbound('parse-subnets.ts')}'
      import { createResolver } from '${outbound('resolver.ts')}'
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
  test('sets no proxy: variables that name one are ignored', async () => {
    let trapped = 0
    const trap = createServer((socket) => {
      trapped++
      socket.destroy()
    })
    const proxy = `http://127.0.0.1:${await listenOn(trap)}`
    const names = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'http_proxy', 'https_proxy', 'all_proxy']
    const env = { ...Object.fromEntries(names.map((name) => [name, proxy])), NODE_USE_ENV_PROXY: '1', NO_PROXY: '' }
    const endpoint = await startCustomerEndpoint({ answer: { status: 200, body: 'ok' } })
    expect(await sendWith(env, endpoint.url)).toMatchObject({ kind: 'answered', status: 200, text: 'ok' })
    await endpoint.close()
    trap.close()
    expect(trapped).toBe(0)
  })

  test('cannot turn off certificate checks', async () => {
    const endpoint = await startCustomerEndpoint({ tls: await createCertificate({ names: ['127.0.0.1'] }) })
    const env = { NODE_TLS_REJECT_UNAUTHORIZED: '0', NODE_NO_WARNINGS: '1' }
    const result = await sendWith(env, endpoint.url)
    await endpoint.close()
    expect(result).toMatchObject({ kind: 'unreachable', cause: 'tls', tlsError: 'self_signed' })
    expect(endpoint.requests).toEqual([])
  })

  test('cannot turn on the lax HTTP parser', async () => {
    const server = createServer((socket) => {
      socket.on('error', () => undefined)
      socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nX-Nul: a\u0000b\r\nContent-Length: 0\r\n\r\n'))
    })
    const url = `http://127.0.0.1:${await listenOn(server)}`
    const result = await sendWith({ NODE_OPTIONS: '--insecure-http-parser' }, url)
    server.close()
    expect(result).toMatchObject({ kind: 'unreachable', cause: 'invalid_answer' })
  })

  test('cannot turn on old TLS versions', async () => {
    const certificate = await createCertificate({ names: ['127.0.0.1'] })
    const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const
    const server = createTlsServer({ ...certificate, ...old }, (socket) => socket.end())
    server.on('tlsClientError', () => undefined)
    const url = `https://127.0.0.1:${await listenOn(server)}`
    const env = { NODE_OPTIONS: '--tls-min-v1.0 --tls-cipher-list=DEFAULT@SECLEVEL=0' }
    const result = await sendWith(env, url, certificate.cert)
    server.close()
    expect(result).toMatchObject({ kind: 'unreachable', cause: 'tls', tlsError: 'protocol' })
  })

  test('may add certificate authorities to those given in code', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'authorities-'))
    const named = await createCertificate({ names: ['127.0.0.1'] })
    const other = await createCertificate({ names: ['127.0.0.1'] })
    writeFileSync(join(folder, 'named.pem'), named.cert)
    const env = { NODE_EXTRA_CA_CERTS: join(folder, 'named.pem') }
    const endpoint = await startCustomerEndpoint({ tls: named })
    expect(await sendWith(env, endpoint.url)).toMatchObject({ kind: 'answered' })
    expect(await sendWith(env, endpoint.url, other.cert)).toMatchObject({ kind: 'answered' })
    expect(await sendWith({}, endpoint.url)).toMatchObject({ kind: 'unreachable', cause: 'tls' })
    await endpoint.close()
    rmSync(folder, { recursive: true })
  })
})
