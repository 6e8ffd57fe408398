import { isUtf8 } from 'node:buffer'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** An answer of a provider in the folder; the file's name is the hash of its request. */
interface RecordedAnswer {
  readonly status: number
  readonly contentType: string
  /** Of the body: Bedrock streams bytes that are no text. */
  readonly encoding?: 'utf8' | 'base64'
  readonly body: string
}

/**
 * Keeps the answers of a model in a folder. A request whose answer is there is answered from it; others are sent, and
 * their answers are kept if their status is 2xx. Keys are in headers, which are neither hashed nor kept. With
 * `isReplay`, such as in CI, a request without a recorded answer gets a 400, which no agent repeats.
 */
export function createRecorder(folder: string, isReplay: boolean) {
  const counts = { replayed: 0, requested: 0 }
  mkdirSync(folder, { recursive: true })
  /** What sends the requests of an agent; `label` distinguishes the repeats of a case, whose requests are equal. */
  const fetchFor = (label: string): typeof fetch => {
    return async (...given) => {
      const request = new Request(...given)
      const text = `${label}\n${new URL(request.url).pathname}\n${await request.text()}`
      const file = join(folder, `${createHash('sha256').update(text).digest('hex').slice(0, 32)}.json`)
      if (existsSync(file)) {
        counts.replayed += 1
        const { status, contentType, encoding, body } = JSON.parse(readFileSync(file, 'utf8')) as RecordedAnswer
        return new Response(Buffer.from(body, encoding), { status, headers: { 'content-type': contentType } })
      }
      // In the words of OpenAI's and Anthropic's APIs.
      const error = { type: 'invalid_request_error', message: `There is no recorded answer (${label})` }
      if (isReplay) return Response.json({ type: 'error', error }, { status: 400 })
      counts.requested += 1
      const response = await fetch(...given)
      const { status, headers, ok } = response
      const bytes = Buffer.from(await response.arrayBuffer())
      const encoding = isUtf8(bytes) ? 'utf8' : 'base64'
      const contentType = headers.get('content-type') ?? 'application/json'
      const recorded: RecordedAnswer = { status, contentType, encoding, body: bytes.toString(encoding) }
      if (ok) writeFileSync(file, `${JSON.stringify(recorded, null, 2)}\n`)
      return new Response(bytes, { status, headers })
    }
  }
  return { counts, fetchFor }
}
