import { startCustomerEndpoint } from '@workflow-service/testkit'
import type { ServerResponse } from 'node:http'
import type { Attack } from '../attack.ts'
import { type AttackedServices, type AttackTarget, sendAndEnd } from '../target.ts'

const API_KEY = 'the key of the model'
const MODEL_ENV = { AGENT_MODEL: 'anthropic:attack', AGENT_API_KEY: API_KEY, AGENT_RATE_LIMIT_SECONDS: '0' }
const services: AttackedServices = { runner: { env: MODEL_ENV } }
const RUNS = 10

const MAX_SENT_BYTES = 64 * 2 ** 20
/** The runner reads at most 8 MiB of an answer; the rest is in the buffers of both ends. */
const MAX_READ_BYTES = 20 * 2 ** 20
const MAX_PAYLOADS = 50

/** Sends an answer that has no end, until the client closes the connection, at most MAX_SENT_BYTES. */
async function sendUntilClosed(response: ServerResponse): Promise<number> {
  const chunk = Buffer.alloc(64 * 1_024, 'x')
  const { promise: closed, resolve } = Promise.withResolvers<void>()
  response.once('close', resolve)
  response.writeHead(200, { 'content-type': 'application/json' })
  response.write('{"type":"message","role":"assistant","content":[{"type":"text","text":"')
  let sent = 0
  while (!response.destroyed && sent < MAX_SENT_BYTES) {
    sent += chunk.length
    if (response.write(chunk)) continue
    const drained = Promise.withResolvers<void>()
    response.once('drain', drained.resolve)
    await Promise.race([drained.promise, closed])
  }
  response.end('"}]}')
  return sent
}

function toMiB(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`
}

function countPayloads({ endpoint }: AttackTarget): number {
  return endpoint.requests.filter(({ text }) => text.includes('"call ')).length
}

/** What a model's API can do. */
export const MODEL_ATTACKS: readonly Attack[] = [
  {
    name: 'endless-model-answer',
    services,
    async run({ target, expect, attack }) {
      const sentBytes: number[] = []
      target.answerAsModel(() => ({
        failure: 'custom',
        respond: (response) => void sendUntilClosed(response).then((sent) => sentBytes.push(sent)),
      }))
      await target.saveSource('Endpoint')
      const ended = await attack(() => target.runAll('Endpoint', RUNS, 'attack'))
      const most = Math.max(...sentBytes)
      expect(most <= MAX_READ_BYTES, `The runner read ${toMiB(most)} of one answer.`)
      expect(ended === `${RUNS} × model_answer_invalid`, `The runs: ${ended}.`)
      return `${RUNS} model answers without end: ${ended}; at most ${toMiB(most)} read`
    },
  },
  {
    // Redirects the request to the model to another origin, to which fetch would also send `x-api-key`.
    name: 'model-redirect',
    services,
    async run({ target, expect, attack }) {
      const other = await startCustomerEndpoint({ answer: { status: 500 } })
      target.answerAsModel(() => ({
        failure: 'custom',
        respond: (response) => response.writeHead(307, { location: `${other.url}/v1/messages` }).end(),
      }))
      await target.saveSource('Endpoint')
      const ended = await attack(() => target.runAll('Endpoint', RUNS, 'attack'))
      const leaked = other.requests.filter(({ rawHeaders }) => rawHeaders.includes(API_KEY))
      await other.close()
      expect(other.requests.length === 0, `${other.requests.length} requests followed the redirect.`)
      expect(leaked.length === 0, `${leaked.length} of them had the key of the model's API.`)
      return `${RUNS} redirects of the model's API to another origin: ${ended}`
    },
  },
  {
    name: 'many-tool-calls',
    services,
    async run({ target, expect, attack }) {
      const results: string[] = []
      await target.saveSource('Endpoint')
      await attack(async () => {
        for (const calls of [1_500, 100]) {
          const texts = Array.from({ length: calls }, (_, n) => ({ text: `call ${n}` }))
          target.answerAsModel((request) => sendAndEnd(request, texts))
          const before = countPayloads(target)
          const ended = await target.runAll('Endpoint', 1, 'attack')
          const payloads = countPayloads(target) - before
          expect(payloads <= MAX_PAYLOADS, `A run sent ${payloads} payloads.`)
          results.push(`one answer with ${calls} tool calls: ${payloads} payloads, ${ended}`)
        }
      })
      return results.join('; ')
    },
  },
]
