import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type { Request, Response } from 'express'

const COMPRESSIBLE = /^(?:text\/|image\/svg|application\/(?:json|manifest\+json))/

const compressors = {
  br: (bytes: Buffer) => promisify(brotliCompress)(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }),
  gzip: (bytes: Buffer) => promisify(gzip)(bytes, { level: 9 }),
}
/** The smaller first. */
const ENCODINGS = ['br', 'gzip'] as const

/** A response in memory that is the same for all callers. */
export interface StaticResponse {
  /** A media type or a file's extension. */
  readonly type: string
  readonly bytes: Buffer
  /** Compressed when first asked for. */
  readonly compressed: Partial<Record<keyof typeof compressors, Promise<Buffer>>>
}

/** Creates a static response of this media type, or that of this file extension. */
export function createStaticResponse(type: string, body: string | Buffer): StaticResponse {
  return { type, bytes: Buffer.from(body), compressed: {} }
}

/**
 * Sends a static response with 200, compressed if the caller accepts it, and to HEAD without its body. Conditional and
 * range requests get the whole response: the contract has neither 304 nor 206.
 */
export async function sendStaticResponse(
  req: Request,
  res: Response,
  { type, bytes, compressed }: StaticResponse,
  headers: Readonly<Record<string, string>>,
): Promise<void> {
  res.set(headers).type(type).vary('Accept-Encoding')
  const encoding = COMPRESSIBLE.test(res.get('Content-Type') ?? '')
    ? ENCODINGS.find((each) => req.acceptsEncodings(each))
    : undefined
  const body = encoding ? await (compressed[encoding] ??= compressors[encoding](bytes)) : bytes
  res.setHeader('Content-Length', body.length)
  if (encoding) res.setHeader('Content-Encoding', encoding)
  res.end(req.method === 'HEAD' ? undefined : body)
}
