import type { Socket } from 'node:net'
import { startRawEndpoint, waitUntil } from '@workflow-service/testkit'
import type { RawEndpointOptions } from '@workflow-service/testkit'
import type { OutboundResult } from '../../src/outbound/outbound-result.ts'
import { parseSubnets } from '../../src/outbound/parse-subnets.ts'
import { createSendRequest } from '../../src/outbound/send-request.ts'
import type { OutboundRequest, SendRequest, SendRequestOptions } from '../../src/outbound/send-request.ts'

/** Test endpoints listen on loopback, which is refused by default. */
export const loopback = parseSubnets('127.0.0.0/8')

/** Must never appear in a result, error or log. */
export const secrets = { token: 'dG9rZW4tdGhhdC1pcy1zZWNyZXQ=', body: 'body-that-is-secret' }

/** A request as the dispatcher sends it, with changes. */
export function request(url: string, changes: Partial<OutboundRequest> = {}): OutboundRequest {
  return {
    url,
    body: JSON.stringify({ text: secrets.body }),
    headers: { 'X-Service-Token': secrets.token, 'X-Request-Id': 'test' },
    // Long enough that only tests of the deadline reach it.
    deadlineMs: 20_000,
    ...changes,
  }
}

export type Handler = (socket: Socket, requestBytes: Buffer) => void
type PostOptions = RawEndpointOptions &
  Partial<OutboundRequest> & { client?: SendRequestOptions; path?: string; scheme?: string }

/**
 * Sends one request to an endpoint that behaves as `handler` says, and checks the promises for every endpoint: one
 * connection, one request, the connection is closed after the result, and the result contains no secret.
 */
export async function postTo(
  handler: Handler,
  { when, tls, client, path = '/hook', scheme, ...changes }: PostOptions = {},
): Promise<{ result: OutboundResult; received: string }> {
  const open = new Set<Socket>()
  const endpoint = await startRawEndpoint(
    (socket, bytes) => {
      open.add(socket)
      socket.once('close', () => open.delete(socket))
      handler(socket, bytes)
    },
    { when, tls },
  )
  try {
    const send: SendRequest = createSendRequest({ allowedSubnets: loopback, ...client })
    const url = scheme === undefined ? endpoint.url : endpoint.url.replace(/^https?/u, scheme)
    const result = await send(request(`${url}${path}`, changes))
    await waitUntil(() => open.size === 0, { message: 'the connection to be closed' })
    if (endpoint.received.length > 1) throw new Error('the endpoint was connected to more than once')
    const received = endpoint.received[0]?.toString('latin1') ?? ''
    if (received.split('POST ').length > 2) throw new Error('the request was sent twice')
    for (const secret of Object.values(secrets)) {
      if (JSON.stringify(result).includes(secret)) throw new Error('the result repeats a secret')
    }
    return { result, received }
  } finally {
    await endpoint.close()
  }
}

/** Returns the result alone. */
export async function resultOf(...args: Parameters<typeof postTo>): Promise<OutboundResult> {
  return (await postTo(...args)).result
}

/** Writes an answer and leaves the connection open. */
export function says(...parts: (string | Buffer)[]): (socket: Socket) => void {
  return (socket) => {
    for (const part of parts) socket.write(part, 'latin1')
  }
}

/** Writes an answer and ends the connection. */
export function saysAndEnds(...parts: (string | Buffer)[]): (socket: Socket) => void {
  return (socket) => {
    says(...parts)(socket)
    socket.end()
  }
}

/** Writes `first`, then `piece` every 10 ms until the client disconnects. */
export function drips(first: string, piece: string): (socket: Socket) => void {
  return (socket) => {
    socket.write(first, 'latin1')
    const timer = setInterval(() => socket.write(piece, 'latin1'), 10)
    socket.once('close', () => clearInterval(timer))
  }
}

/** Writes `first`, then `piece` as fast as the client reads it. */
export function floods(first: string, piece: Buffer): (socket: Socket) => void {
  return (socket) => {
    socket.write(first, 'latin1')
    const pour = (): void => {
      while (!socket.destroyed && socket.write(piece)) continue
      socket.once('drain', pour)
    }
    pour()
  }
}
