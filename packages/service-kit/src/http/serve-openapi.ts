import type { Request, RequestHandler } from 'express'
import { createStaticResponse, sendStaticResponse, type StaticResponse } from './static-response.ts'
import { SECURITY_HEADERS } from './write-json.ts'

const ANY_SERVER = 'http://server.invalid'

/**
 * Creates the handler that answers an OpenAPI document. Its server is `serverUrl`; or else, on a loopback connection,
 * the address of this end; or else `/`, the place of the document itself. Never the caller's Host: a cache or a mirror
 * would spread it.
 */
export function serveOpenApi(describe: (serverUrl: string) => object, serverUrl?: string): RequestHandler {
  const responses = new Map<string, StaticResponse>()
  let text: string | undefined
  return async (req, res) => {
    const url = serverUrl ?? loopbackOrigin(req) ?? '/'
    let response = responses.get(url)
    if (!response) {
      text ??= JSON.stringify(describe(ANY_SERVER))
      const body = text.replace(ANY_SERVER, () => url)
      response = createStaticResponse('application/json', body)
      responses.set(url, response)
    }
    await sendStaticResponse(req, res, response, { ...SECURITY_HEADERS, 'X-Request-Id': res.locals.requestId })
  }
}

function loopbackOrigin({ socket: { localAddress = '', localPort } }: Request): string | undefined {
  if (localAddress === '::1') return `http://[::1]:${localPort}`
  return /^(?:::ffff:)?127\./.test(localAddress) ? `http://127.0.0.1:${localPort}` : undefined
}
