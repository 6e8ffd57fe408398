import { writeFile } from 'node:fs/promises'
import { defineTrial } from '../shared/define-trial.ts'
import { round, toTable } from '../shared/figures.ts'
import { SERVICES } from '../shared/system.ts'
import type { Attack } from './attack.ts'
import { API_ATTACKS } from './attacks/api.ts'
import { APPLICATION_ATTACKS } from './attacks/application.ts'
import { MODEL_ATTACKS } from './attacks/model.ts'
import { RUN_ATTACKS } from './attacks/runs.ts'
import { type AttackReport, runAttack } from './run-attack.ts'
import { LATENCY_KINDS, startAttackTarget } from './target.ts'

/** All attacks, in the order in which they run. */
export const ATTACKS: readonly Attack[] = [...RUN_ATTACKS, ...API_ATTACKS, ...MODEL_ATTACKS, ...APPLICATION_ATTACKS]

export const trial = defineTrial({
  summary: 'attacks the services, and measures what another organization notices',
  parts: ATTACKS.map(({ name }) => name),
  options: {
    seconds: ['how long an attack goes on that repeats its requests', 5],
    json: ['also write the reports to this file', ''],
  },
  async run({ options: { seconds, json }, parts, log }) {
    const reports: AttackReport[] = []
    for (const attack of ATTACKS.filter(({ name }) => parts.includes(name))) {
      log(attack.name)
      // A new target for each attack, so that nothing of the previous one is still under way.
      const target = await startAttackTarget(attack.services)
      try {
        const report = await runAttack(target, attack, { seconds })
        reports.push(report)
        for (const violation of report.violations) log(`  ${violation}`)
      } finally {
        await target.close()
      }
    }
    process.stdout.write(`${describeReports(reports)}\n`)
    if (json !== '') await writeFile(json, `${JSON.stringify({ seconds, reports }, null, 2)}\n`)
    return reports.flatMap(({ name, violations }) => violations.map((violation) => `${name}: ${violation}`))
  },
})

/** A row for each load, and a verdict for each attack. */
function describeReports(reports: readonly AttackReport[]): string {
  const rows = reports.flatMap(({ name, latency }) =>
    Object.entries(latency).map(([load, of]) => [
      name,
      load,
      ...LATENCY_KINDS.map((kind) => `${round(of[kind].p95)} (${round(of[kind].max)})`),
    ]),
  )
  const verdicts = reports.map(({ name, summary, durationMs, peakMiB, violations }) => {
    const peaks = SERVICES.map((service) => `${service} ${round(peakMiB[service] ?? Number.NaN)}`).join(', ')
    const verdict = violations.length > 0 ? `HURT: ${violations.join(' ')}` : 'ok'
    return `- ${name}: ${verdict} (${summary}; ${(durationMs / 1_000).toFixed(1)} s; peak MiB: ${peaks})`
  })
  const head = ['attack', 'load', 'reads', 'starts', 'reads in the application', 'saves there']
  return `The victim's p95 (max) in ms:\n\n${toTable(head, rows)}\n\n${verdicts.join('\n')}`
}
