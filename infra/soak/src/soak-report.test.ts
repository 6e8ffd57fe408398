import { describe, expect, test } from '@jest/globals'
import { drawCharts } from './draw-charts.ts'
import { judge, type Latency, type SoakRecord, toFigureTable } from './soak-report.ts'
import type { Sample } from './take-sample.ts'

const HOUR_MS = 3_600_000

/** A record of four hours. The functions get the time in hours. */
function recordOf(figures: {
  rssMiB?: (hour: number) => number
  dead?: number
  startMs?: (hour: number) => number
}): SoakRecord {
  const { rssMiB = () => 100, dead = 0, startMs = () => 10 } = figures
  const times = Array.from({ length: 240 }, (_, minute) => (minute * HOUR_MS) / 60)
  const samples = times.map((at): Sample => ({
    at,
    services: { gateway: { rssMiB: rssMiB(at / HOUR_MS), heapMiB: 30, handles: 10, openFiles: 30, cpuSeconds: 1 } },
    connections: 20,
    databaseMiB: 10 + at / HOUR_MS,
    tables: { starts: { mib: 1, live: 10_000, dead } },
    broker: { rssMiB: 100, connections: 7, ready: 0 },
    load: 1,
  }))
  const latencies = (ms: (hour: number) => number): Latency[] =>
    times.map((at) => ({ at, ms: ms(at / HOUR_MS), isDisturbed: false }))
  return {
    beganAt: 0,
    endedAt: 4 * HOUR_MS,
    samples,
    latencies: {
      start: latencies(startMs),
      api: latencies(() => 2),
      app: latencies(() => 5),
      commit: latencies(() => 1),
    },
    starts: times,
  }
}

const grownIn = (record: SoakRecord): string[] =>
  judge(record)
    .filter(({ outcome }) => outcome !== 'kept')
    .map(({ name }) => name)

describe('the verdict of a soak', () => {
  test('accepts what only rises in the first hour, and what goes up and down', () => {
    const warmingUp = recordOf({ rssMiB: (hour) => 100 + 80 * Math.min(hour, 0.9) })
    expect(grownIn(warmingUp)).toEqual([])
    expect(grownIn(recordOf({ rssMiB: (hour) => 150 + 40 * Math.sin(20 * hour) }))).toEqual([])
  })

  test('finds memory that rises after the first hour', () => {
    expect(grownIn(recordOf({ rssMiB: (hour) => 100 + 15 * hour }))).toEqual(['gateway, memory'])
  })

  test('finds dead rows that are not removed, and latency that rises while a commit stays as fast', () => {
    expect(grownIn(recordOf({ dead: 4_000 }))).toEqual(['dead rows, worst table'])
    expect(grownIn(recordOf({ startMs: (hour) => 10 + 5 * hour }))).toEqual(['start → endpoint, p50'])
  })
})

test('the table of a soak has a row for each piece', () => {
  expect(
    toFigureTable(recordOf({}))
      .split('\n')
      .filter((line) => /^\| \d.*\| 100 /.test(line)),
  ).toHaveLength(12)
})

test('the picture of a soak has a line for each series, within the picture', () => {
  const picture = drawCharts(
    [
      {
        title: 'a < b',
        lines: [
          {
            name: 'one',
            points: [
              [0, 5],
              [HOUR_MS, 20],
            ],
          },
        ],
      },
      {
        title: 'c',
        isLogarithmic: true,
        lines: [
          {
            name: 'two',
            points: [
              [0, 0.5],
              [HOUR_MS, 900],
            ],
          },
        ],
      },
    ],
    { hours: 1, marks: [HOUR_MS / 2] },
  )
  expect(picture).toContain('a &lt; b')
  const points = [...picture.matchAll(/points="([^"]+)"/g)].map(([, text = '']) =>
    text.split(' ').map((point) => point.split(',').map(Number)),
  )
  expect(points).toEqual([
    [
      [52, 160.5],
      [608, 30],
    ],
    [
      [52, expect.any(Number)],
      [608, expect.any(Number)],
    ],
  ])
  for (const [, y = Number.NaN] of points.flat()) expect(y >= 30 && y <= 204).toBe(true)
})
