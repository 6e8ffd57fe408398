import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from '@jest/globals'
import { verifyPassword } from './passwords.ts'

const WORK_MS = 50

test('passwords that many strangers try at once are checked two at a time, each for a quarter of its turn', async () => {
  const begunMs: number[] = []
  const find = async () => {
    begunMs.push(performance.now())
    await sleep(WORK_MS)
    return undefined
  }
  const networks = Array.from({ length: 10 }, (_, index) => `198.51.100.${index}`)
  await Promise.all(
    networks.map((address) => verifyPassword({ address, userAgent: null, cookies: undefined }, 'wrong', find)),
  )
  // Four turns, without the hashes. A timer may end a millisecond early.
  expect(begunMs.at(-1)! - begunMs[0]!).toBeGreaterThan(4 * 4 * (WORK_MS - 1))
})
