import {
  createStaticAnswer,
  SECURITY_HEADERS,
  sendStaticAnswer,
  type StaticAnswer,
} from '@workflow-service/service-kit'
import type { RequestHandler } from 'express'
import { PAGE_POLICY } from './page-assets.ts'
import type { Reference } from './render-reference.ts'

/** A reference and where it is served. */
export interface ServedReference {
  /** The path of the page, without a slash at the end. */
  readonly path: string
  /** Other paths that lead a browser to the page: they answer it to requests that accept HTML, and pass others on. */
  readonly otherPaths: readonly string[]
  readonly reference: () => Reference
}

/** Creates the handler of the page. It is rendered when first asked for, which takes about 50 ms, and kept. */
export function serveReference({ path, otherPaths, reference }: ServedReference): RequestHandler {
  let answer: Promise<StaticAnswer> | undefined
  return async (req, res, next) => {
    const isRead = req.method === 'GET' || req.method === 'HEAD'
    const acceptsHtml = (req.headers.accept ?? '').includes('text/html')
    if (!isRead || !(req.path === path || (otherPaths.includes(req.path) && acceptsHtml))) {
      next()
      return
    }
    answer ??= render(reference())
    await sendStaticAnswer(req, res, await answer, {
      ...SECURITY_HEADERS,
      'Content-Security-Policy': PAGE_POLICY,
      'Cache-Control': 'public, max-age=300',
      'X-Request-Id': res.locals.requestId,
      ...(req.path === path ? {} : { Vary: 'Accept' }),
    })
  }
}

/** Loads the renderer only now: most processes never show the page. */
async function render(reference: Reference): Promise<StaticAnswer> {
  const { renderReference } = await import('./render-reference.ts')
  return createStaticAnswer('text/html', renderReference(reference))
}
