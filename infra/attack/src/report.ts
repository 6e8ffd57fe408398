import Table from 'cli-table3'
import { type AttackReport, LATENCY_KINDS, type LatencyKind, type LoadFigures } from './run-attack.ts'

/** The reports as a table for the terminal. */
export function toTable(reports: readonly AttackReport[]): string {
  const table = new Table({
    head: [
      'attack',
      'summary',
      'victim p95 (max) in ms: reads',
      'starts',
      'reads in the application',
      'saves there',
      'CPU ms: gateway/dispatcher/runner/app/postgres/attacker',
      'peak MiB: gateway/dispatcher/runner/app',
      'verdict',
    ],
    colWidths: [24, 40, 24, 24, 24, 24, 38, 22, 46],
    style: { head: [], border: [] },
    wordWrap: true,
  })
  for (const report of reports) {
    const { name, summary, durationMs, before, ordinary, during, peakMiB } = report
    const loads = { before, ordinary, during }
    table.push([
      name,
      `${summary} (${(durationMs / 1_000).toFixed(1)} s)`,
      ...LATENCY_KINDS.map((kind) => formatLoads(loads, formatLatency(kind))),
      formatLoads(loads, ({ cpuMs: { gateway, dispatcher, runner, app, postgres, attacker } }) =>
        [gateway, dispatcher, runner, app, postgres, attacker].map(format).join('/'),
      ),
      [peakMiB.gateway, peakMiB.dispatcher, peakMiB.runner, peakMiB.app]
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

/** One line for each load: before, during ordinary requests, and during the attack. */
function formatLoads(loads: Record<string, LoadFigures | null>, toText: (load: LoadFigures) => string): string {
  return Object.entries(loads)
    .flatMap(([name, load]) => (load === null ? [] : [`${name}: ${toText(load)}`]))
    .join('\n')
}

function formatLatency(kind: LatencyKind): (load: LoadFigures) => string {
  return ({ latency: { [kind]: latency } }) => `${format(latency.p95)} (${format(latency.max)})`
}

function format(ms: number): string {
  return Number.isNaN(ms) ? '–' : Math.round(ms).toLocaleString('en')
}
