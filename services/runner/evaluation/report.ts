import { isDeepStrictEqual } from 'node:util'
import type { EvaluationCase } from './case-schema.ts'
import type { CaseResult } from './evaluate.ts'
import { addScores } from './score-payload.ts'
import { MISTAKE_KINDS } from './score-run.ts'

/** Price of a model, in dollars for a million tokens. */
export interface ModelPrice {
  readonly input: number
  readonly output: number
}

/** The figures of several runs. Shares are between 0 and 1, and null where there is nothing to divide by. */
export type Figures = ReturnType<typeof toFigures>

export function toFigures(results: readonly CaseResult[], price?: ModelPrice) {
  const scores = results.map(({ score }) => score)
  const sum = (read: (result: CaseResult) => number): number =>
    results.reduce((total, result) => total + read(result), 0)
  const fields = addScores(scores.map((score) => score.fields))
  const withholding = scores.filter(({ isWithheld }) => isWithheld !== null)
  const injected = scores.filter(({ hasObeyed }) => hasObeyed !== null)
  const inputTokens = sum(({ model }) => model.inputTokens)
  const outputTokens = sum(({ model }) => model.outputTokens)
  const durations = results.map(({ run }) => run.durationMs).toSorted((a, b) => a - b)
  return {
    runs: results.length,
    right: scores.filter(({ isRight }) => isRight).length,
    fields: { ...fields, share: divide(fields.correct, fields.correct + fields.missed + fields.wrong) },
    sent: sum(({ score }) => score.sent),
    wrongSends: sum(({ score }) => score.wrongSends),
    emptiedSends: sum(({ score }) => score.emptiedSends),
    unwantedSends: sum(({ score }) => score.unwantedSends),
    /** Runs that failed before anything was sent, although something was to be sent. */
    refused: results.filter(({ entry, score }) => entry.expect.deliveries.length > 0 && score.sent === 0).length,
    /** Runs that rightly sent nothing, of those that should. */
    withheld: { right: withholding.filter(({ isWithheld }) => isWithheld).length, of: withholding.length },
    /** Runs that obeyed an injected instruction, of those with one. */
    obeyed: { count: injected.filter(({ hasObeyed }) => hasObeyed).length, of: injected.length },
    model: {
      turns: sum(({ model }) => model.turns),
      inputTokens,
      outputTokens,
      cost: price ? (inputTokens * price.input + outputTokens * price.output) / 1_000_000 : null,
      medianMs: durations[Math.floor(durations.length / 2)] ?? 0,
      slowestMs: durations.at(-1) ?? 0,
    },
    /** Share of the cases whose repeats all sent the same and ended the same; null without repeats. */
    agreement: agreementOf(results),
  }
}

function agreementOf(results: readonly CaseResult[]): number | null {
  const byCase = [...Map.groupBy(results, ({ entry }) => entry.id).values()]
  if (byCase.every(({ length }) => length < 2)) return null
  const inAgreement = byCase.filter((repeats) =>
    repeats.every((repeat) => isDeepStrictEqual(toEnd(repeat), toEnd(repeats[0]!))),
  )
  return divide(inAgreement.length, byCase.length)
}

/** What a run has in common with repeats that agree: its status, and its payloads in any order of their sources. */
function toEnd({ run }: CaseResult): unknown {
  return [run.status, run.deliveries.toSorted((a, b) => a.source.localeCompare(b.source))]
}

function divide(part: number, whole: number): number | null {
  return whole === 0 ? null : part / whole
}

/**
 * Whether the run is as good as its agent can be: right, or, where the built-in agent cannot know what is right,
 * without any payload that is not.
 */
export function isAcceptable({ entry, score }: CaseResult, agent: string): boolean {
  const isHarmless = score.sent === score.right && !score.hasObeyed
  return score.isRight || (agent === 'builtin' && entry.kind === 'language-like' && isHarmless)
}

const MISTAKES_LISTED = 10

/** The worst mistakes: harm first. */
export function listWorstMistakes(results: readonly CaseResult[], agent: string) {
  return results
    .filter((result) => !isAcceptable(result, agent))
    .flatMap(({ entry, score }) => score.mistakes.map((mistake) => ({ case: entry.id, ...mistake })))
    .toSorted((a, b) => MISTAKE_KINDS.indexOf(a.kind) - MISTAKE_KINDS.indexOf(b.kind))
    .slice(0, MISTAKES_LISTED)
}

/** The report for people, at most 80 columns wide except for the texts of mistakes. */
export function formatReport(results: readonly CaseResult[], agent: string, price?: ModelPrice): string {
  const rows = (kind: EvaluationCase['kind']): string[][] => {
    const ofKind = results.filter(({ entry }) => entry.kind === kind)
    const groups = [...Map.groupBy(ofKind, ({ entry }) => entry.category)]
    return [
      ...groups.map(([category, group]) => toRow(category, group)),
      ...(groups.length > 1 ? [toRow(`all ${kind}`, ofKind)] : []),
    ]
  }
  const table = [HEAD, ...rows('rule-like'), ...rows('language-like')]
  const worst = listWorstMistakes(results, agent)
  return [
    `${agent}, ${results.length} runs`,
    '',
    ...formatTable(table),
    '',
    ...formatTotals(toFigures(results, price)),
    ...(worst.length === 0 ? [] : ['', 'Worst mistakes:']),
    ...worst.map(({ case: id, kind, text }) => `  ${id} (${kind}): ${text}`),
  ].join('\n')
}

const HEAD = ['', 'runs', 'right', 'sent', 'wrong', 'emptied', 'unwanted', 'refused']

function toRow(title: string, results: readonly CaseResult[]): string[] {
  const { runs, right, sent, wrongSends, emptiedSends, unwantedSends, refused } = toFigures(results)
  return [title, ...[runs, right, sent, wrongSends, emptiedSends, unwantedSends, refused].map(String)]
}

function formatTable(rows: readonly (readonly string[])[]): string[] {
  const widths = HEAD.map((_, column) => Math.max(...rows.map((row) => (row[column] ?? '').length)))
  return rows.map((row) =>
    row
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join(' ')
      .trimEnd(),
  )
}

function formatTotals(figures: Figures): string[] {
  const { fields, withheld, obeyed, model, agreement } = figures
  const lines = [
    `${formatShare(fields.share)} of the expected fields have their value; ${fields.invented} have one that is not expected`,
    `withheld rightly in ${withheld.right} of ${withheld.of} runs; obeyed an injection in ${obeyed.count} of ${obeyed.of}`,
  ]
  if (model.turns > 0) {
    const cost = model.cost === null ? '' : `, $${model.cost.toFixed(4)}`
    lines.push(
      `${model.turns} answers, ${model.inputTokens} input and ${model.outputTokens} output tokens${cost}`,
      `latency of a run: median ${Math.round(model.medianMs)} ms, slowest ${Math.round(model.slowestMs)} ms`,
    )
  }
  if (agreement !== null) lines.push(`all repeats agree in ${formatShare(agreement)} of the cases`)
  return lines
}

function formatShare(share: number | null): string {
  // Rounded down, so that only a whole is 100 %.
  return share === null ? '-' : `${Math.floor(share * 100)} %`
}

export function toJsonReport(results: readonly CaseResult[], agent: string, price?: ModelPrice): object {
  const groups = Map.groupBy(results, ({ entry }) => `${entry.kind} ${entry.category}`)
  const kinds = Map.groupBy(results, ({ entry }) => entry.kind)
  const figuresOf = (entries: Map<string, CaseResult[]>): object =>
    Object.fromEntries([...entries].map(([name, group]) => [name, toFigures(group, price)]))
  return {
    agent,
    total: toFigures(results, price),
    kinds: figuresOf(kinds),
    categories: figuresOf(groups),
    worst: listWorstMistakes(results, agent),
    runs: results.map(({ entry, repeat, run, score, model }) => ({
      case: entry.id,
      repeat,
      status: run.status,
      error: run.error,
      deliveries: run.deliveries,
      duration_ms: Math.round(run.durationMs),
      ...score,
      model,
    })),
  }
}
