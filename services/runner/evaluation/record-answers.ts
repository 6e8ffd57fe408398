import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** An answer of a provider in the folder; the file's name is the hash of its request. */
interface RecordedAnswer {
  readonly status: number
  readonly contentType: string
  readonly body: string
}

/**
 * Keeps the answers of a model in a folder. A request whose answer is there is answered from it; others are sent, and
 * their answers are kept if their status is 2xx. Keys are in headers, which are neither hashed nor kept.
 */
export class AnswerRecorder {
  readonly #options: { readonly folder: string; readonly baseUrl: string; readonly isReplay: boolean }
  /** Requests that were sent to the provider. */
  requested = 0
  /** Requests that were answered from the folder. */
  replayed = 0

  /** With `isReplay`, such as in CI, a request without a recorded answer gets a 400, which no agent repeats. */
  constructor(options: { readonly folder: string; readonly baseUrl: string; readonly isReplay: boolean }) {
    this.#options = options
    mkdirSync(options.folder, { recursive: true })
  }

  /** What sends the requests of an agent; `label` distinguishes the repeats of a case, whose requests are equal. */
  fetchFor(label: string): typeof fetch {
    const { folder, baseUrl, isReplay } = this.#options
    return async (input, init) => {
      const { url, text } = await readRequest(input, init)
      const path = url.slice(baseUrl.replace(/\/+$/u, '').length + 1)
      const request = `${label}\n${path}\n${text}`
      const hash = createHash('sha256').update(request).digest('hex').slice(0, 32)
      const file = join(folder, `${hash}.json`)
      if (existsSync(file)) {
        this.replayed += 1
        const { status, contentType, body } = JSON.parse(readFileSync(file, 'utf8')) as RecordedAnswer
        return new Response(body, { status, headers: { 'content-type': contentType } })
      }
      if (isReplay) {
        const message = `There is no recorded answer ${hash} (${label}); record it with a provider`
        // In the words of OpenAI's and Anthropic's APIs.
        const error = { type: 'invalid_request_error', message, param: null, code: null }
        return Response.json({ type: 'error', error }, { status: 400 })
      }
      this.requested += 1
      const response = await fetch(input, init)
      const { status, headers, ok } = response
      const body = await response.text()
      const recorded = { status, contentType: headers.get('content-type') ?? 'application/json', body }
      if (ok) writeFileSync(file, `${JSON.stringify(recorded satisfies RecordedAnswer, null, 2)}\n`)
      return new Response(body, { status, headers })
    }
  }
}

async function readRequest(...given: Parameters<typeof fetch>): Promise<{ url: string; text: string }> {
  const request = new Request(...given)
  return { url: request.url, text: await request.text() }
}
