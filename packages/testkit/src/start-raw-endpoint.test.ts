import { describe, expect, test } from '@jest/globals'
import { startRawEndpoint } from './start-raw-endpoint.ts'

describe('startRawEndpoint', () => {
  test('hands the whole request over, body included, and sends what the handler writes', async () => {
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

  test('lets the handler speak before a byte has come', async () => {
    const endpoint = await startRawEndpoint((socket) => void socket.end('SSH-2.0-OpenSSH_9.2\r\n'), { when: 'connect' })
    await expect(fetch(endpoint.url)).rejects.toThrow('fetch failed')
    await endpoint.close()
  })

  test('closes sockets that the handler left open', async () => {
    const endpoint = await startRawEndpoint(
      (socket) => void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf'),
    )
    const answer = await fetch(endpoint.url)
    await endpoint.close()
    await expect(answer.text()).rejects.toThrow('terminated')
  })
})
