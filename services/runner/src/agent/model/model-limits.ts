import { PAYLOAD_MAX_VALUES } from '@workflow-service/contract'
import { isExactNumber } from '@workflow-service/rules/convert-value'
import { assertSimple, createTurns } from '@workflow-service/service-kit'
import type { ModelProvider } from '../agent-settings.ts'
import { dropUnknownParts } from './drop-unknown-parts.ts'

/** Bytes of one answer of the model's API, uncompressed. */
const MODEL_ANSWER_MAX_BYTES = 8 * 1_048_576

/**
 * Fields and list items of an answer: reading more would hold up the process. An object of any fields is a list of
 * names and values in the arguments of a tool, so that a field of the largest payload counts twice.
 */
export const MODEL_ANSWER_MAX_MEMBERS = 2 * PAYLOAD_MAX_VALUES

/** An answer up to this size is read as it arrives. */
const MODEL_ANSWER_COMMON_BYTES = 256 * 1_024

/** The answer is larger than this service accepts: the run fails, since another answer would probably be as large. */
export class ModelAnswerLimitError extends Error {
  override name = 'ModelAnswerLimitError'
}

/**
 * Counts the fields and list items of a JSON text.
 * @throws ModelAnswerLimitError beyond `maxMembers`, before the rest is read.
 */
export function countMembers(json: Uint8Array, maxMembers = MODEL_ANSWER_MAX_MEMBERS): number {
  try {
    return assertSimple(json, { maxMembers })
  } catch (cause) {
    const most = MODEL_ANSWER_MAX_MEMBERS.toLocaleString('en')
    throw new ModelAnswerLimitError(`The model's answer has more than ${most} fields and list items`, { cause })
  }
}

/**
 * Makes `send` the HTTP client of the AI SDK. It follows no redirect, because the SDK's own headers, and with them the
 * API key, would go to the other origin. It stops reading an answer at MODEL_ANSWER_MAX_BYTES. Of all answers beyond
 * MODEL_ANSWER_COMMON_BYTES, it reads one chunk per turn of the event loop, so that several of them hold up no run. It
 * keeps the digits of numbers that a double cannot hold, and leaves out parts that the package of the provider does not
 * know.
 */
export function limitAnswers(send: typeof fetch, provider: ModelProvider): typeof fetch {
  return async (input, init) => {
    const response = await send(input, { ...init, redirect: 'error' })
    if (response.body === null) return response
    const { status, statusText, headers } = response
    const limited = response.body.pipeThrough(limitBytes(MODEL_ANSWER_MAX_BYTES))
    const [, kind] = /^(application\/json|text\/event-stream)\b/i.exec(headers.get('content-type') ?? '') ?? []
    if (!kind) return new Response(limited, { status, statusText, headers })
    const isStream = kind.startsWith('text')
    const exact = limited.pipeThrough(quoteInexactNumbers(isStream))
    const drop = dropUnknownParts(provider, isStream)
    return new Response(drop ? exact.pipeThrough(drop) : exact, { status, statusText, headers })
  }
}

function limitBytes(maxBytes: number): TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>> {
  let bytes = 0
  return new TransformStream({
    async transform(chunk, controller) {
      bytes += chunk.byteLength
      if (bytes > maxBytes) {
        throw new ModelAnswerLimitError(`The model's answer is larger than ${maxBytes / 1_048_576} MiB`)
      }
      if (bytes > MODEL_ANSWER_COMMON_BYTES) await waitForTurn('large answers')
      controller.enqueue(chunk)
    },
  })
}

/** All large answers wait for the same turns. */
const waitForTurn = createTurns()

/** Quick and rare: no other answer is searched. Looks back from a point or "e": from each digit, it takes long. */
const MAY_BE_INEXACT = /\.(?:\d{15}|\d+[eE]|(?<=\d{15}\.)\d)|[eE](?<=\d[eE])\+?\d/
/**
 * Begins once in a number, and takes a string without an end, which none has beyond its line, as one: more would take
 * quadratic time.
 */
const STRING_OR_DECIMAL = /"(?:[^"\\\n]|\\.)*"?|(?<!\d)-?\d+(?:\.\d+(?:[eE][+-]?\d+)?|[eE][+-]?\d+)/g

const LINE_FEED = 10

/**
 * Writes the decimal numbers of an answer that a double cannot hold as texts: of JSON as a whole, of a stream of events
 * line by line, since each has its JSON. Some packages of providers parse the arguments of a tool call together with
 * the answer, so that the digits would be lost before anyone could refuse them. As a text, the value is exact where the
 * field takes text, and is refused where it does not.
 */
export function quoteInexactNumbers(
  isStream = false,
): TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>> {
  let chunks: Uint8Array<ArrayBuffer>[] = []
  const flush = (controller: TransformStreamDefaultController<Uint8Array<ArrayBuffer>>): void => {
    const bytes = Buffer.concat(chunks)
    chunks = []
    countMembers(bytes)
    const text = bytes.toString('latin1')
    const isExact = !MAY_BE_INEXACT.test(text)
    controller.enqueue(isExact ? bytes : Buffer.from(text.replace(STRING_OR_DECIMAL, quoteIfInexact), 'latin1'))
  }
  return new TransformStream({
    transform(chunk, controller) {
      const end = isStream ? chunk.lastIndexOf(LINE_FEED) + 1 : 0
      chunks.push(chunk.subarray(0, end))
      if (end > 0) flush(controller)
      chunks.push(chunk.subarray(end))
    },
    flush,
  })
}

function quoteIfInexact(part: string): string {
  return part.startsWith('"') || isExactNumber(part) ? part : `"${part}"`
}
