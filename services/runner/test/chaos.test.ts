import { randomInt } from 'node:crypto'
import { describe, expect, test } from '@jest/globals'
import { runChaos } from './chaos/run-chaos.ts'

describe('the whole service, its parts killed at random under load', () => {
  test('loses nothing, sends nothing twice and keeps the order', async () => {
    // Seen in the output of the tests; `pnpm chaos --seed N` repeats it.
    const seed = randomInt(2 ** 31)
    const report = await runChaos({
      seed,
      seconds: 25,
      timing: { leaseMs: 4_000, renewMs: 1_000, sweepMs: 500 },
      log: (line) => {
        process.stderr.write(`chaos ${line}\n`)
      },
    })
    expect({ seed, faults: report.faults }).toEqual({ seed, faults: [] })
    expect(report.incidents).toBeGreaterThan(0)
    expect(report.succeeded).toBeGreaterThan(0)
  }, 420_000)
})
