import { once } from 'node:events'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, test } from '@jest/globals'
import { createLogger } from './logger.ts'
import { parseOtlpHeaders, startTracing, type Tracing } from './tracing.ts'

let server: Server | undefined
afterEach(() => {
  server?.closeAllConnections()
  server?.close()
})

/** Tracing to a receiver that answers so, the bodies that it got, and the lines that were logged. */
async function setUp(respond: (response: ServerResponse) => void) {
  const bodies: string[] = []
  const lines: unknown[] = []
  server = createServer((request, response) => {
    void text(request)
      .then((body) => bodies.push(body))
      .then(() => respond(response))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) }
  const logger = createLogger({ service: 'test', level: 'debug', destination })
  const tracing = await startTracing({ endpoint, headers: {}, sampleRatio: 1, service: 'test', logger })
  return { tracing, bodies, lines }
}

const traceWork = (tracing: Tracing, attributes: Record<string, string | string[]> = {}): Promise<void> =>
  tracing.trace({ name: 'work', kind: 'internal', attributes }, () => Promise.resolve())

describe('the export of spans', () => {
  test('is abandoned when the receiver does not answer within 2 s of the stop', async () => {
    const { tracing, bodies } = await setUp(() => {})
    await traceWork(tracing)
    const startedMs = performance.now()
    await tracing.stop()
    expect(performance.now() - startedMs).toBeLessThan(4_000)
    expect(bodies).toHaveLength(1)
  })

  test('drops spans that wait beyond the limit, and cuts long values', async () => {
    const { tracing, bodies } = await setUp((response) => response.end('{}'))
    const attributes = { text: 'x'.repeat(1_000), texts: ['y'.repeat(1_000)] }
    // In one turn of the event loop: the first 512 spans are being exported, and 2,048 wait.
    for (let n = 0; n < 2_700; n += 1) await traceWork(tracing, attributes)
    const countExported = () => bodies.join('').match(/"name":"work"/gu)?.length ?? 0
    const untilMs = performance.now() + 60_000
    while (countExported() < 512 + 2_048 && performance.now() < untilMs) await sleep(20)
    await tracing.stop()
    expect(countExported()).toBe(512 + 2_048)
    expect(bodies.join('')).not.toMatch(/x{257}|y{257}/u)
  })

  test('logs one warning for many exports that fail', async () => {
    const { tracing, lines } = await setUp((response) => response.writeHead(400).end())
    for (let n = 0; n < 1_100; n += 1) await traceWork(tracing)
    await tracing.stop()
    expect(lines).toMatchObject([{ level: 'warn', msg: 'span.export_failed' }])
  })

  test('changes nothing for work that fails, and has nothing of its error', async () => {
    const { tracing, bodies } = await setUp((response) => response.end('{}'))
    const failing = tracing.trace({ name: 'work', kind: 'internal', attributes: {} }, () =>
      Promise.reject(new Error('parrot')),
    )
    await expect(failing).rejects.toThrow('parrot')
    await tracing.stop()
    expect(bodies).toHaveLength(1)
    expect(bodies[0]).not.toContain('parrot')
  })
})

describe('parseOtlpHeaders', () => {
  test('reads pairs with percent-encoded values', () => {
    expect(parseOtlpHeaders('')).toEqual({})
    expect(parseOtlpHeaders('api-key=abc, tenant = a%20b=c ,')).toEqual({ 'api-key': 'abc', tenant: 'a b=c' })
  })

  test.each(['abc', '=abc', 'a b=c', 'key=%', 'key=a%0Ax', 'key=%E4%BD%A0'])('refuses %s', (pairs) => {
    expect(() => parseOtlpHeaders(pairs)).toThrow('must be pairs of name=value')
  })
})
