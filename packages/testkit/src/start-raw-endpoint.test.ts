import { describe, expect, test } from '@jest/globals'
import { startRawEndpoint } from './start-raw-endpoint.ts'

describe('startRawEndpoint', () => {
  test('calls the handler with the complete request, and sends the bytes that it writes', async () => {
    const endpoint = await startRawEndpoint((socket, bytes) => {
      socket.end(`HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n${bytes.includes('{"order":1}') ? 'ok' : 'no'}`)
    })
    const answer = await fetch(endpoint.url, { method: 'POST', body: '{"order":1}' })
    expect(await answer.text()).toBe('ok')
    expect(endpoint.received.map((bytes) => bytes.toString())).toEqual([
      expect.stringMatching(/^POST \/ HTTP\/1\.1\r\n/),
    ])
    await endpoint.close()
  })

  test('can call the handler before the client has sent a byte', async () => {
    const endpoint = await startRawEndpoint((socket) => void socket.end('SSH-2.0-OpenSSH_9.2\r\n'), { when: 'connect' })
    await expect(fetch(endpoint.url)).rejects.toThrow('fetch failed')
    await endpoint.close()
  })

  test('closes sockets that the handler leaves open', async () => {
    const endpoint = await startRawEndpoint(
      (socket) => void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf'),
    )
    const answer = await fetch(endpoint.url)
    await endpoint.close()
    await expect(answer.text()).rejects.toThrow('terminated')
  })
})
