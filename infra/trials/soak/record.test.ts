import { expect, test } from '@jest/globals'
import type { Call } from '../shared/load.ts'
import { judge, type Sample, type SoakRecord } from './record.ts'

const HOUR_MS = 3_600_000

/** A record of four hours. The functions get the time in hours. */
function recordOf(figures: { rssMiB?: (hour: number) => number; startMs?: (hour: number) => number }): SoakRecord {
  const { rssMiB = () => 100, startMs = () => 10 } = figures
  const times = Array.from({ length: 240 }, (_, minute) => (minute * HOUR_MS) / 60)
  const samples = times.map((at): Sample => ({
    at,
    databaseMiB: 10 + at / HOUR_MS,
    figures: { 'gateway, memory': rssMiB(at / HOUR_MS), 'gateway, heap': 30 },
  }))
  const calls = (ms: (hour: number) => number): Call[] => times.map((at) => ({ at, ms: ms(at / HOUR_MS) }))
  return {
    beganAt: 0,
    endedAt: 4 * HOUR_MS,
    samples,
    incidents: [],
    calls: { start: calls(startMs), api: calls(() => 2), app: calls(() => 5), commit: calls(() => 1) },
    starts: times,
  }
}

test.each<[string, Parameters<typeof recordOf>[0], string[]]>([
  ['accepts what only rises in the first hour', { rssMiB: (hour) => 100 + 80 * Math.min(hour, 0.9) }, []],
  ['accepts what goes up and down', { rssMiB: (hour) => 150 + 40 * Math.sin(20 * hour) }, []],
  ['finds memory that rises after the first hour', { rssMiB: (hour) => 100 + 15 * hour }, ['gateway, memory']],
  [
    'finds latency that rises while a commit stays as fast',
    { startMs: (hour) => 10 + 5 * hour },
    ['start → endpoint, p50'],
  ],
])('the verdict of a soak %s', (_promise, figures, grown) => {
  const verdicts = judge(recordOf(figures)).filter(({ hasGrown }) => hasGrown)
  expect(verdicts.map(({ name }) => name)).toEqual(grown)
})
