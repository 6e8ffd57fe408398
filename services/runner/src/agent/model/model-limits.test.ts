import { afterEach, expect, test } from '@jest/globals'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fetchModelAnswer } from './model-limits.ts'

const BYTES = 4 * 1_024 * 1_024
const READERS = 8
let server: Server | undefined

afterEach(() => void server?.close())

/** Starts a server whose answers have this many bytes. */
async function startAnswering(bytes: number): Promise<string> {
  server = createServer((_request, response) => response.end(Buffer.alloc(bytes, 'x')))
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

test('of several large answers, one turn of the event loop reads at most one chunk', async () => {
  const url = await startAnswering(BYTES)
  let turn = 0
  let isDone = false
  const countTurns = (): void => {
    turn += 1
    if (!isDone) setImmediate(countTurns)
  }
  setImmediate(countTurns)
  const chunksByTurn = new Map<number, number>()
  const readAll = async (): Promise<number> => {
    let total = 0
    for await (const chunk of (await fetchModelAnswer(url)).body ?? []) {
      total += chunk.length
      if (total > BYTES / 4) chunksByTurn.set(turn, (chunksByTurn.get(turn) ?? 0) + 1)
    }
    return total
  }
  const totals = await Promise.all(Array.from({ length: READERS }, readAll))
  isDone = true
  expect(totals).toEqual(totals.map(() => BYTES))
  // A chunk comes before or after the turn is counted, so two of them may have the same number.
  expect(Math.max(...chunksByTurn.values())).toBeLessThanOrEqual(2)
})
