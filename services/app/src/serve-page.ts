import { type Dirent, readdirSync, readFileSync } from 'node:fs'
import { extname, join, relative } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type { RequestHandler } from 'express'

const COMPRESSIBLE = /\.(?:html|js|css|svg|json|webmanifest|txt)$/
/** The build puts files whose names contain a hash of their content there. */
const HASHED_FOLDER = '/assets/'
const NOT_BUILT = 'The page is not built. Run `pnpm build:console` and reload.\n'

const compressors = {
  br: (bytes: Buffer) => promisify(brotliCompress)(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }),
  gzip: (bytes: Buffer) => promisify(gzip)(bytes, { level: 9 }),
}
/** The smaller first. */
const ENCODINGS = ['br', 'gzip'] as const

interface PageFile {
  readonly name: string
  readonly cacheControl: string
  readonly bytes: Buffer
  /** Compressed when first asked for. */
  readonly compressed: Partial<Record<keyof typeof compressors, Promise<Buffer>>>
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
    const encoding = COMPRESSIBLE.test(file.name) ? ENCODINGS.find((each) => req.acceptsEncodings(each)) : undefined
    const bytes = encoding ? await (file.compressed[encoding] ??= compressors[encoding](file.bytes)) : file.bytes
    if (encoding) res.setHeader('Content-Encoding', encoding)
    res.type(extname(file.name)).set({ 'Cache-Control': file.cacheControl, Vary: 'Accept-Encoding' })
    res.setHeader('Content-Length', bytes.length)
    res.end(req.method === 'HEAD' ? undefined : bytes)
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
    if (!entry.isFile()) continue
    const path = join(entry.parentPath, entry.name)
    const url = `/${relative(folder, path).replaceAll('\\', '/')}`
    files.set(url, {
      name: entry.name,
      cacheControl: url.startsWith(HASHED_FOLDER) ? 'public, max-age=31536000, immutable' : 'no-cache',
      bytes: readFileSync(path),
      compressed: {},
    })
  }
  const index = files.get('/index.html')
  return index && files.set('/', index)
}
