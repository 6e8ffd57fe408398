import { LRUCache } from 'lru-cache'
import type { Request, RequestHandler } from 'express'
import { createStaticAnswer, sendStaticAnswer, type StaticAnswer } from './static-answer.ts'
import { SECURITY_HEADERS } from './write-json.ts'

const ANY_SERVER = 'http://server.invalid'
const PLAIN_HOST = /^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i
/** Addresses of the service whose document is kept; more of them are only sent by callers who invent Host headers. */
const MAX_SERVERS = 16

/**
 * Creates the handler that answers an OpenAPI document. Its server is `serverUrl`, or else the address that the caller used,
 * so that the paths can be appended to it.
 */
export function serveOpenApi(describe: (serverUrl: string) => object, serverUrl?: string): RequestHandler {
  const answers = new LRUCache<string, StaticAnswer>({ max: MAX_SERVERS })
  let text: string | undefined
  return async (req, res) => {
    const url = serverUrl ?? originOf(req)
    let answer = answers.get(url)
    if (!answer) {
      text ??= JSON.stringify(describe(ANY_SERVER))
      answer = createStaticAnswer(
        'application/json',
        text.replace(ANY_SERVER, () => url),
      )
      answers.set(url, answer)
    }
    await sendStaticAnswer(req, res, answer, { ...SECURITY_HEADERS, 'X-Request-Id': String(res.locals['requestId']) })
  }
}

/** Returns scheme and host of the address that the caller used: behind a trusted proxy, those that it forwards. */
function originOf({ protocol, host, socket }: Request): string {
  const plainHost = PLAIN_HOST.test(host ?? '') ? host : `127.0.0.1:${socket.localPort}`
  return `${protocol === 'https' ? 'https' : 'http'}://${plainHost}`
}
