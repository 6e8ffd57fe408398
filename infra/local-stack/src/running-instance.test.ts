import type { AddressInfo } from 'node:net'
import { resolve } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { freePort } from '@workflow-service/dev-servers'
import { readLocalConfig } from './config.ts'
import { alreadyRunningError, holdAppPort } from './running-instance.ts'

test.each([
  ['.local', 8080, 'LOCAL_DIR=.local2 PORT=8090'],
  ['.local2', 8090, 'LOCAL_DIR=.local22 PORT=8100'],
  ['.local', 80, 'LOCAL_DIR=.local2 PORT=8090'],
])('the error of a second start in %s at port %i proposes another folder and port', (folder, port, settings) => {
  const running = { PID: '1', GATEWAY_URL: `http://127.0.0.1:${port}` }
  const { message } = alreadyRunningError(resolve(folder), running)
  expect(message).toContain(`run a second one beside it: ${settings} npm start`)
})

describe('the port of the application', () => {
  test('is that of the last start, not that of a proxy on this machine, and another one for a start beside it', async () => {
    const port = await freePort()
    const saved = { APP_PORT: String(port), APP_URL: `http://127.0.0.1:${await freePort()}` }
    await using held = await holdAppPort(readLocalConfig({}), saved)
    await using other = await holdAppPort(readLocalConfig({}), saved)
    const ports = [held, other].map((server) => (server.address() as AddressInfo).port)
    expect(ports[0]).toBe(port)
    expect(ports[1]).not.toBe(port)
  })
})
