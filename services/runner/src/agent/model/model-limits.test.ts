import { expect, test } from '@jest/globals'
import { withTurns } from '../../../test/support/count-turns.ts'
import { limitAnswers, quoteInexactNumbers } from './model-limits.ts'

const CHUNK_BYTES = 64 * 1_024
const CHUNKS = 64
const READERS = 8

/** A body whose chunks are all there at once, so that only the reader decides when it reads them. */
function createBody(): ReadableStream<Uint8Array> {
  let left = CHUNKS
  return new ReadableStream({
    pull(controller) {
      if (left === 0) return controller.close()
      left -= 1
      controller.enqueue(new Uint8Array(CHUNK_BYTES))
    },
  })
}

test('of several large answers, one turn of the event loop reads at most one chunk', async () => {
  const fetchModelAnswer = limitAnswers(async () => new Response(createBody()), 'openai')
  const chunksByTurn = new Map<number, number>()
  const totals = await withTurns((turn) =>
    Promise.all(
      Array.from({ length: READERS }, async () => {
        let total = 0
        for await (const chunk of (await fetchModelAnswer('https://models.example/')).body ?? []) {
          total += chunk.length
          if (total > (CHUNKS / 4) * CHUNK_BYTES) chunksByTurn.set(turn(), (chunksByTurn.get(turn()) ?? 0) + 1)
        }
        return total
      }),
    ),
  )
  expect(totals).toEqual(totals.map(() => CHUNKS * CHUNK_BYTES))
  // A chunk comes before or after the turn is counted, so two of them may have the same number.
  expect(Math.max(...chunksByTurn.values())).toBeLessThanOrEqual(2)
})

async function quoted(text: string): Promise<string> {
  const { body } = new Response(text)
  return await new Response(body?.pipeThrough(quoteInexactNumbers())).text()
}

test('a decimal number that a double cannot hold becomes a text, before the package of a provider parses it', async () => {
  expect(
    await quoted(
      '{"input":{"rate":0.12345678901234567890123,"ö":[1e999,-1.50]},"text":"3.14159265358979323846 \\" 1"}',
    ),
  ).toBe('{"input":{"rate":"0.12345678901234567890123","ö":["1e999",-1.50]},"text":"3.14159265358979323846 \\" 1"}')
})

const line = (number: string) =>
  `: 5" wide\r\ndata: {"args":{"rate":${number},"text":"0.12345678901234567890123"}}\r\n\r\n`

test('so does one in a stream of events, however it is divided into chunks', async () => {
  const bytes = new TextEncoder().encode(line('0.12345678901234567890123') + line('1.5'))
  for (const size of [1, 7, 64, bytes.length]) {
    const stream = new ReadableStream<Uint8Array<ArrayBuffer>>({
      start(controller) {
        for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.slice(at, at + size))
        controller.close()
      },
    })
    const text = await new Response(stream.pipeThrough(quoteInexactNumbers(true))).text()
    expect(text).toBe(line('"0.12345678901234567890123"') + line('1.5'))
  }
})

test.each([
  ['{"avgLogprobs":-0.00012345678901234567,"a":[0.1,-2.5e-7,12345678901234567890]}'],
  ['{"text":"0.12345678901234567890123"}'],
  [''],
  // In linear time: the next ones would take minutes.
  [`{"rate":1.5e3,"arguments":"${String.raw`\"a\":`.repeat(100_000)}`],
  [`[1.5e3,${'1'.repeat(1_000_000)}]`],
])('%.80s stays as it is', async (text) => {
  expect(await quoted(text)).toBe(text)
})
