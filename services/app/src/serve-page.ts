import { type Dirent, readdirSync, readFileSync } from 'node:fs'
import { extname, join, relative } from 'node:path'
import { createStaticAnswer, sendStaticAnswer, type StaticAnswer } from '@workflow-service/service-kit'
import type { RequestHandler } from 'express'

/** The build puts files whose names contain a hash of their content there. */
const HASHED_FOLDER = '/assets/'
const NOT_BUILT = 'The page is not built. Run `pnpm build:console` and reload.\n'

interface PageFile {
  readonly cacheControl: string
  readonly answer: StaticAnswer
}

/** Serves the built page from memory. A path that is no file gets the page itself where a browser navigates to it. */
export function servePage(folder: string): RequestHandler {
  let files: ReadonlyMap<string, PageFile> | undefined
  return async (req, res, next) => {
    if (req.method !== 'GET' && req.method !== 'HEAD') return next()
    files ??= readFiles(folder)
    const isNavigation = (req.headers.accept ?? '').includes('text/html')
    const file = files?.get(req.path) ?? (isNavigation ? files?.get('/index.html') : undefined)
    if (!files && isNavigation) {
      res.status(503).set({ 'Cache-Control': 'no-store', 'Retry-After': '5' }).type('text/plain').send(NOT_BUILT)
      return undefined
    }
    if (!file) return next()
    await sendStaticAnswer(req, res, file.answer, { 'Cache-Control': file.cacheControl })
    return undefined
  }
}

/** Reads all files of the folder by their paths; undefined when there is no page. */
function readFiles(folder: string): ReadonlyMap<string, PageFile> | undefined {
  let entries: Dirent[]
  try {
    entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  } catch {
    return undefined
  }
  const files = new Map<string, PageFile>()
  for (const entry of entries) {
    // The build's own files begin with a dot.
    if (!entry.isFile() || entry.name.startsWith('.')) continue
    const path = join(entry.parentPath, entry.name)
    const url = `/${relative(folder, path).replaceAll('\\', '/')}`
    files.set(url, {
      cacheControl: url.startsWith(HASHED_FOLDER) ? 'public, max-age=31536000, immutable' : 'no-cache',
      answer: createStaticAnswer(extname(path), readFileSync(path)),
    })
  }
  const index = files.get('/index.html')
  return index && files.set('/', index)
}
