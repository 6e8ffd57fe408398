import { FILE_CONTENT_MAX_BYTES, FILE_MEDIA_CONTENT_MAX_LENGTH } from './limits.ts'

/** What a model can read besides text. */
export const MEDIA_KINDS = ['pdf', 'image'] as const
export type MediaKind = (typeof MEDIA_KINDS)[number]

export interface MediaType {
  readonly kind: MediaKind
  readonly mediaType: string
  /** How the bytes begin, in base64. */
  readonly beginning: string
}

const JPEG: MediaType = { kind: 'image', mediaType: 'image/jpeg', beginning: '/9j/' }
const TYPES: Readonly<Record<string, MediaType>> = {
  pdf: { kind: 'pdf', mediaType: 'application/pdf', beginning: 'JVBERi0' },
  png: { kind: 'image', mediaType: 'image/png', beginning: 'iVBORw0KGgo' },
  jpg: JPEG,
  jpeg: JPEG,
  gif: { kind: 'image', mediaType: 'image/gif', beginning: 'R0lGOD' },
  webp: { kind: 'image', mediaType: 'image/webp', beginning: 'UklGR' },
}

/** The type of a PDF or an image by the extension of its name; undefined for a text file. */
export function mediaTypeOf(name: string): MediaType | undefined {
  return TYPES[/\.(\w{3,4})$/u.exec(name)?.[1]?.toLowerCase() ?? '']
}

/**
 * The content of a PDF or an image, which is stored in base64, without white space; undefined if it is something else,
 * as by the extension of the name. Takes about 10 ms for 4 MiB.
 */
export function readMediaContent(name: string, content: string): string | undefined {
  const base64 = content.replaceAll(/\s+/gu, '')
  const isMedia = base64.startsWith(mediaTypeOf(name)?.beginning ?? '\0') && base64.length % 4 === 0
  return isMedia && /^[A-Za-z0-9+/]*={0,2}$/u.test(base64) ? base64 : undefined
}

/** Says that the content of a file of this name is too large; undefined if it is not. */
export function findFileSizeError(name: string, content: string): string | undefined {
  if (mediaTypeOf(name)) {
    return content.length > FILE_MEDIA_CONTENT_MAX_LENGTH
      ? 'must have at most 3 MiB, which are 4 MiB in base64'
      : undefined
  }
  if (content.length * 3 <= FILE_CONTENT_MAX_BYTES) return undefined
  const bytes = new TextEncoder().encode(content).length
  return bytes > FILE_CONTENT_MAX_BYTES ? 'must have at most 1 MiB (1,048,576 bytes of UTF-8)' : undefined
}

/**
 * Says that the content of a file with the name of a PDF or an image is something else; undefined if it is not. Only
 * for a new name or content: earlier releases stored texts under such names, and those stay valid.
 */
export function findMediaError(name: string, content: string): string | undefined {
  if (!mediaTypeOf(name) || readMediaContent(name, content) !== undefined) return undefined
  return 'must be the file in base64, because its name is that of a PDF or an image'
}
