import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** A response as received. */
export interface RawResponse {
  readonly status: number
  readonly headers: Record<string, string>
  readonly text: string
}

/** A TCP connection, to send what an HTTP client would not. */
export interface RawConnection {
  readonly socket: Socket
  readonly write: (bytes: string | Buffer) => void
  /** Everything received until the server closed the connection. */
  readonly ended: Promise<string>
}

export async function openConnection(url: string): Promise<RawConnection> {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port) })
  let received = ''
  socket.setEncoding('utf8')
  socket.on('data', (text: string) => (received += text))
  socket.on('error', () => {})
  const { promise: ended, resolve } = Promise.withResolvers<string>()
  socket.once('close', () => resolve(received))
  await once(socket, 'connect')
  return { socket, write: (bytes) => void socket.write(bytes), ended }
}

/** Sends the bytes and returns the only response once the server has closed the connection; null without one. */
export async function sendRaw(url: string, bytes: string | Buffer): Promise<RawResponse | null> {
  const connection = await openConnection(url)
  connection.write(bytes)
  const received = await connection.ended
  if (received.split('HTTP/1.1 ').length > 2) throw new Error(`More than one response: ${received}`)
  return parseResponse(received)
}

/** Parses the first response of the text received; null when there is none. */
export function parseResponse(received: string): RawResponse | null {
  const [, status, lines = '', text = ''] = /^HTTP\/1\.1 (\d{3}) [^\r]*\r\n([^]*?)\r\n\r\n([^]*)$/.exec(received) ?? []
  if (status === undefined) return null
  const headers = Object.fromEntries(
    lines.split('\r\n').map((line) => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
    }),
  )
  return { status: Number(status), headers, text: text.slice(0, Number(headers['content-length'] ?? text.length)) }
}
