import type { Request, RequestHandler } from 'express'
import { createStaticAnswer, sendStaticAnswer, type StaticAnswer } from './static-answer.ts'
import { SECURITY_HEADERS } from './write-json.ts'

const ANY_SERVER = 'http://server.invalid'

/**
 * Creates the handler that answers an OpenAPI document. Its server is `serverUrl`; or else, on a loopback connection,
 * the address of this end; or else `/`, the place of the document itself. Never the caller's Host: a cache or a mirror
 * would spread it.
 */
export function serveOpenApi(describe: (serverUrl: string) => object, serverUrl?: string): RequestHandler {
  const answers = new Map<string, StaticAnswer>()
  let text: string | undefined
  return async (req, res) => {
    const url = serverUrl ?? loopbackOrigin(req) ?? '/'
    let answer = answers.get(url)
    if (!answer) {
      text ??= JSON.stringify(describe(ANY_SERVER))
      const body = text.replace(ANY_SERVER, () => url)
      answer = createStaticAnswer('application/json', body)
      answers.set(url, answer)
    }
    await sendStaticAnswer(req, res, answer, { ...SECURITY_HEADERS, 'X-Request-Id': res.locals.requestId })
  }
}

function loopbackOrigin({ socket: { localAddress = '', localPort } }: Request): string | undefined {
  if (localAddress === '::1') return `http://[::1]:${localPort}`
  return /^(?:::ffff:)?127\./.test(localAddress) ? `http://127.0.0.1:${localPort}` : undefined
}
