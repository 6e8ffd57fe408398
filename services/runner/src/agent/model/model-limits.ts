import { setImmediate } from 'node:timers/promises'
import type { LanguageModelMiddleware } from 'ai'
import { quoteInexactNumbers } from './quote-inexact-numbers.ts'

/** Bytes of one answer of the model's API, uncompressed. */
export const MODEL_ANSWER_MAX_BYTES = 8 * 1_048_576

/** An answer up to this size is read as it arrives. */
const MODEL_ANSWER_COMMON_BYTES = 256 * 1_024

/** Tool calls in one answer of the model. */
const MAX_TOOL_CALLS_PER_ANSWER = 100

/** The answer is larger than this service accepts: the run fails, since another answer would probably be as large. */
export class ModelAnswerLimitError extends Error {
  override name = 'ModelAnswerLimitError'
}

/**
 * Makes `send` the HTTP client of the AI SDK. It follows no redirect, because the SDK's own headers, and with them the
 * API key, would go to the other origin. It stops reading an answer at MODEL_ANSWER_MAX_BYTES: an answer of 1.5 GB took
 * a runner to 4.6 GiB of memory. Of all answers beyond MODEL_ANSWER_COMMON_BYTES, it reads one chunk per turn of the
 * event loop: ten of them held up each turn by up to 30 ms. It keeps the digits of numbers that a double cannot hold.
 */
export function limitAnswers(send: typeof fetch): typeof fetch {
  return async (input, init) => {
    const response = await send(input, { ...init, redirect: 'error' })
    if (response.body === null) return response
    const { status, statusText, headers } = response
    const limited = response.body.pipeThrough(limitBytes(MODEL_ANSWER_MAX_BYTES))
    const isJson = /^application\/json\b/i.test(headers.get('content-type') ?? '')
    return new Response(isJson ? limited.pipeThrough(quoteInexactNumbers()) : limited, { status, statusText, headers })
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
      if (bytes > MODEL_ANSWER_COMMON_BYTES) await nextTurn()
      controller.enqueue(chunk)
    },
  })
}

let lastTurn: Promise<void> = Promise.resolve()

/** Resolves in a later turn of the event loop, each call in a turn of its own, in the order of the calls. */
function nextTurn(): Promise<void> {
  lastTurn = lastTurn.then(() => setImmediate())
  return lastTurn
}

/** What a provider's package gives: a part of an answer, whole or streamed. */
interface AnswerPart {
  readonly type: string
  readonly input?: unknown
}

/**
 * Calls what `observe` creates for each answer with the answer's parts, before the AI SDK reads them. An error ends the
 * answer.
 */
export function observeParts(observe: () => (part: AnswerPart) => void): LanguageModelMiddleware {
  return {
    specificationVersion: 'v4',
    async wrapGenerate({ doGenerate }) {
      const answer = await doGenerate()
      answer.content.forEach(observe())
      return answer
    },
    async wrapStream({ doStream }) {
      const { stream, ...rest } = await doStream()
      const see = observe()
      const observer = new TransformStream({
        transform(part, controller) {
          see(part as AnswerPart)
          controller.enqueue(part)
        },
      })
      return { ...rest, stream: stream.pipeThrough(observer) }
    },
  }
}

/**
 * Refuses an answer with more than MAX_TOOL_CALLS_PER_ANSWER tool calls before the AI SDK checks each of them: for a
 * call of an unknown tool, it writes a message with the names of all tools.
 */
export const limitToolCalls = observeParts(() => {
  let calls = 0
  return ({ type }) => {
    if (type === 'tool-call' && ++calls > MAX_TOOL_CALLS_PER_ANSWER) {
      throw new ModelAnswerLimitError(
        `The model's answer has more than ${MAX_TOOL_CALLS_PER_ANSWER} tool calls, so none of them was executed`,
      )
    }
  }
})
