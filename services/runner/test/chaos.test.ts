import { randomInt } from 'node:crypto'
import { describe, expect, test } from '@jest/globals'
import { runChaos } from './chaos/run-chaos.ts'

describe('the whole service, while random parts are killed under load', () => {
  test('loses nothing, sends nothing twice and keeps the order', async () => {
    // The test prints the seed; `pnpm chaos --seed N` uses the same incidents.
    const seed = randomInt(2 ** 31)
    const report = await runChaos({
      seed,
      seconds: 10,
      // Shorter than those of `pnpm chaos`, in the same proportions: more incidents in less time.
      timing: { leaseMs: 2_000, renewMs: 500, sweepMs: 500 },
      calmMs: [100, 800],
      pausedMs: [500, 4_000],
      log: (line) => {
        process.stderr.write(`chaos ${line}\n`)
      },
    })
    expect({ seed, violations: report.violations }).toEqual({ seed, violations: [] })
    expect(report.incidents).toBeGreaterThan(0)
    expect(report.succeeded).toBeGreaterThan(0)
  }, 420_000)
})
