import {
  createStaticResponse,
  SECURITY_HEADERS,
  sendStaticResponse,
  type StaticResponse,
} from '@workflow-service/service-kit'
import type { RequestHandler } from 'express'
import { PAGE_POLICY } from './page-assets.ts'
import type { Reference } from './render-reference.ts'

const PATH = '/docs'
/** They send the page to requests that accept HTML, and pass others on. */
const OTHER_PATHS = ['/', '/docs/']

/**
 * Creates the handler of the page at `/docs`. The page is rendered when first asked for, which takes about 50 ms, and
 * kept. The renderer is loaded only then: most processes never show the page.
 */
export function serveReference(reference: () => Reference): RequestHandler {
  let response: Promise<StaticResponse> | undefined
  const render = async () => {
    const { renderReference } = await import('./render-reference.ts')
    return createStaticResponse('text/html', renderReference(reference()))
  }
  return async (req, res, next) => {
    const isRead = req.method === 'GET' || req.method === 'HEAD'
    const leadsToPage = OTHER_PATHS.includes(req.path) && (req.headers.accept ?? '').includes('text/html')
    if (!isRead || (req.path !== PATH && !leadsToPage)) {
      next()
      return
    }
    response ??= render().catch((error: unknown) => {
      // A process without free file descriptors, for example, may load the renderer for the next request.
      response = undefined
      throw error
    })
    await sendStaticResponse(req, res, await response, {
      ...SECURITY_HEADERS,
      'Content-Security-Policy': PAGE_POLICY,
      'Cache-Control': 'public, max-age=300',
      'X-Request-Id': res.locals.requestId,
      ...(leadsToPage ? { Vary: 'Accept' } : {}),
    })
  }
}
