import Table from 'cli-table3'
import type { AttackReport, VictimLatency } from './run-attack.ts'

/** The reports as a table for the terminal. */
export function toTable(reports: readonly AttackReport[]): string {
  const table = new Table({
    head: ['attack', 'done', 'victim p95 (max): reads', 'starts', 'peak MiB: gateway/dispatcher/runner', 'verdict'],
    colWidths: [24, 44, 26, 26, 20, 46],
    style: { head: [], border: [] },
    wordWrap: true,
  })
  for (const report of reports) {
    const { name, done, durationMs, before, during, peakMiB } = report
    table.push([
      name,
      `${done} (${(durationMs / 1_000).toFixed(1)} s)`,
      change('reads', before, during),
      change('starts', before, during),
      [peakMiB.gateway, peakMiB.dispatcher, peakMiB.runner]
        .map((mib) => (mib === null ? '–' : Math.round(mib)))
        .join('/'),
      isHurt(report) ? `HURT: ${reasonsOf(report).join(' ')}` : 'ok',
    ])
  }
  return table.toString()
}

/** Why the services or the victim were hurt; empty if they were not. */
export function reasonsOf({ violations, delays }: AttackReport): string[] {
  return [...violations, ...delays]
}

export function isHurt(report: AttackReport): boolean {
  return reasonsOf(report).length > 0
}

function change(kind: keyof VictimLatency, before: VictimLatency, during: VictimLatency): string {
  const figure = ({ [kind]: { p95, max } }: VictimLatency) => `${format(p95)} (${format(max)})`
  return `${figure(before)} → ${figure(during)} ms`
}

function format(ms: number): string {
  return Number.isNaN(ms) ? '–' : Math.round(ms).toLocaleString('en')
}
