import { expect, test } from '@jest/globals'
import express from 'express'
import request from 'supertest'
import { serveOpenApi } from './serve-openapi.ts'

/** The server of the document that a caller with a Host of its own gets, on a connection to this address. */
async function serverAt(localAddress: string, serverUrl?: string): Promise<string> {
  const app = express()
  app.use((req, _res, next) => {
    Object.defineProperties(req.socket, { localAddress: { value: localAddress }, localPort: { value: 8080 } })
    next()
  })
  app.use(serveOpenApi((url) => ({ servers: [{ url }] }), serverUrl))
  const { body } = await request(app).get('/').set('Host', 'evil.test').set('X-Forwarded-Host', 'evil.test')
  return (body as { servers: [{ url: string }] }).servers[0].url
}

test.each([
  ['127.0.0.1', 'http://127.0.0.1:8080'],
  ['::ffff:127.0.0.1', 'http://127.0.0.1:8080'],
  ['::1', 'http://[::1]:8080'],
  ['10.0.0.7', '/'],
  ['fe80::1', '/'],
])('names loopback on a connection to %s, and no host on another one: %s', async (address, server) => {
  expect(await serverAt(address)).toBe(server)
  expect(await serverAt(address, 'https://api.acme.test')).toBe('https://api.acme.test')
})
