import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { extname, join, relative } from 'node:path'
import { createStaticResponse, sendStaticResponse, type StaticResponse } from '@workflow-service/service-kit'
import type { RequestHandler } from 'express'

/** The build puts files whose names contain a hash of their content there. */
const HASHED_FOLDER = '/assets/'
const NOT_BUILT = 'The page is not built. Run `pnpm build:console` and reload.\n'

/** Serves the built page from memory. A path that is no file gets the page itself where a browser navigates to it. */
export function servePage(folder: string): RequestHandler {
  let files: ReturnType<typeof readFiles>
  return async (req, res, next) => {
    if (req.method !== 'GET' && req.method !== 'HEAD') return next()
    files ??= readFiles(folder)
    const isNavigation = (req.headers.accept ?? '').includes('text/html')
    if (!files && isNavigation) {
      res.status(503).set({ 'Cache-Control': 'no-store', 'Retry-After': '5' }).type('text/plain').send(NOT_BUILT)
      return undefined
    }
    const file = files?.get(req.path)
    const response = file ?? (isNavigation ? files?.get('/') : undefined)
    if (!response) return next()
    const isHashed = file && req.path.startsWith(HASHED_FOLDER)
    const headers = { 'Cache-Control': isHashed ? 'public, max-age=31536000, immutable' : 'no-cache' }
    await sendStaticResponse(req, res, response, headers)
    return undefined
  }
}

/** Reads all files of the folder by their paths, but for the build's own; undefined when there is no page. */
function readFiles(folder: string) {
  if (!existsSync(join(folder, 'index.html'))) return undefined
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  const paths = entries.flatMap((entry) =>
    entry.isFile() && !entry.name.startsWith('.') ? [join(entry.parentPath, entry.name)] : [],
  )
  const files = new Map<string, StaticResponse>(
    paths.map((path) => {
      const response = createStaticResponse(extname(path), readFileSync(path))
      return [`/${relative(folder, path).replaceAll('\\', '/')}`, response] as const
    }),
  )
  return files.set('/', files.get('/index.html')!)
}
