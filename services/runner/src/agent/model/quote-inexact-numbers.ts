import { isExactNumber } from '../exact-number.ts'

/** Quick and rare: no other answer is searched. */
const MAY_BE_INEXACT = /\d\.\d{15}|\.\d+[eE]|\d{15}\.\d|\d[eE]\+?\d/
const STRING_OR_DECIMAL = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+(?:[eE][+-]?\d+)?|[eE][+-]?\d+)/g

/**
 * Writes the decimal numbers of a JSON answer that a double cannot hold as texts. Some packages of providers parse the
 * arguments of a tool call together with the answer, so that the digits would be lost before anyone could refuse them.
 * As a text, the value is exact where the field takes text, and is refused where it does not.
 */
export function quoteInexactNumbers(): TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array<ArrayBuffer>[] = []
  return new TransformStream({
    transform(chunk) {
      chunks.push(chunk)
    },
    flush(controller) {
      const bytes = Buffer.concat(chunks)
      const text = bytes.toString('latin1')
      const isExact = !MAY_BE_INEXACT.test(text)
      controller.enqueue(isExact ? bytes : Buffer.from(text.replace(STRING_OR_DECIMAL, quoteIfInexact), 'latin1'))
    },
  })
}

function quoteIfInexact(part: string): string {
  return part.startsWith('"') || isExactNumber(part) ? part : `"${part}"`
}
