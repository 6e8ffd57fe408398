import {
  END_RUN,
  type JournalStep,
  listEditedPayloads,
  type NewJournalStep,
  type SessionSummaryStep,
} from '@workflow-service/contract'
import type { EarlierRun } from '@workflow-service/database'
import type { ModelConfig } from '../agent-settings.ts'
import type { AgentRun } from '../agent.ts'
import { indexToolResults, listData, startText } from '../agent-steps.ts'
import { isDeliveryCall } from '../deliveries.ts'
import { readEnding } from './model-tools.ts'

/** Earlier runs to read at most. */
const MAX_EARLIER_RUNS = 50
/**
 * What is read for a summary at most, in shares of the budget: it must not cost more than the runs that use it.
 */
const SUMMARIZED_SHARES = 8
/**
 * UTF-8 bytes per token: fewer than in English text, about as many as in Chinese text. The estimate is rarely too low.
 */
export const BYTES_PER_TOKEN = 3

/** The session's earlier runs as a part of the prompt. */
export type PromptHistory = ReturnType<typeof formatHistory>

/** What a run of a session may read of those before it. */
export type EarlierRuns = Awaited<ReturnType<typeof readEarlierRuns>>

export function findSummary(steps: readonly (JournalStep | NewJournalStep)[]): SessionSummaryStep | undefined {
  return listData(steps, 'session_summary')[0]
}

/** Reads the session's earlier runs, and the newest summary of them. `own`: the summary in the journal of the run. */
export async function readEarlierRuns(
  run: Pick<AgentRun, 'history' | 'readSummary'>,
  own: SessionSummaryStep | undefined,
) {
  const { runs, total } = await run.history(MAX_EARLIER_RUNS)
  // The retention may have deleted others.
  const isWhole = runs.length < MAX_EARLIER_RUNS && !runs.some(({ isTooLarge }) => isTooLarge)
  const read = runs.flatMap(({ steps }) => findSummary(steps) ?? []).findLast(({ text }) => text !== '')
  const summary = own && own.text !== '' ? own : (read ?? (isWhole ? undefined : await run.readSummary()))
  return {
    /** That of the run itself, or else the newest one in the journals of the others; it takes the place of its runs. */
    summary,
    /** Those that are not in the summary, oldest first. */
    runs: runs.filter(({ number }) => number > (summary?.through ?? 0)),
    total,
  }
}

/**
 * Formats the summary and the newest runs that fit into the token budget; if `isHalved`, into half of what they take
 * then. A run is shown whole or not at all, the oldest first.
 */
export function formatHistory(
  { summary, runs, total }: EarlierRuns,
  { budgetTokens, isHalved }: { readonly budgetTokens: number; readonly isHalved: boolean },
) {
  const texts = [...(summary ? [formatSummary(summary)] : []), ...runs.map(formatRun)]
  const fitting = takeNewest(texts, budgetTokens)
  const shown = isHalved ? takeNewest(fitting, Math.floor(countTokens(fitting) / 2)) : fitting
  const isSummaryShown = summary !== undefined && shown.length === texts.length
  const shownRuns = isSummaryShown ? 1 + summary.through - (summary.from ?? 1) + runs.length : shown.length
  return { text: shown.join('\n\n'), shownRuns, totalRuns: total }
}

/**
 * The earlier summary with all runs but the newest ones, which fit into half of the budget, and the numbers of the
 * first and the last run in it. Undefined if everything fits. At most half of the tokens that a run may use are read.
 */
export function findUnsummarized(
  { summary, runs }: EarlierRuns,
  { historyTokens: budgetTokens, runTokens }: Pick<ModelConfig, 'historyTokens' | 'runTokens'>,
) {
  if (budgetTokens === 0) return undefined
  const texts = runs.map(formatRun)
  const before = summary ? [formatSummary(summary)] : []
  if (countTokens([...before, ...texts]) <= budgetTokens) return undefined
  const older = texts.length - takeNewest(texts, budgetTokens / 2).length
  const through = runs[older - 1]?.number
  if (through === undefined) return undefined
  const maxTokens = Math.min(SUMMARIZED_SHARES * budgetTokens, Math.floor(runTokens / 2))
  const readTokens = Math.max(0, maxTokens - countTokens(before))
  const cut = texts.slice(0, older).map((text) => fitTokens(text, Math.min(budgetTokens, readTokens)))
  const read = takeNewest(cut, readTokens)
  const first = runs[older - read.length]?.number ?? through
  const from = summary && first === summary.through + 1 ? (summary.from ?? 1) : first
  return { text: [...before, ...read].join('\n\n'), from, through }
}

/** The beginning of the text that takes these tokens. */
export function fitTokens(text: string, tokens: number): string {
  const maxBytes = Math.floor(tokens * BYTES_PER_TOKEN)
  return Buffer.from(text)
    .subarray(0, maxBytes)
    .toString('utf8')
    .replace(/\uFFFD$/u, '')
}

function formatSummary({ from = 1, through, text }: SessionSummaryStep): string {
  return `A summary of the runs ${from} to ${through}:\n${text}`
}

/** The last of the texts that together fit into the budget. */
function takeNewest(texts: readonly string[], budgetTokens: number): string[] {
  const first = texts.findLastIndex((_text, index) => countTokens(texts.slice(index)) > budgetTokens) + 1
  return texts.slice(first)
}

function countTokens(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN), 0)
}

function formatRun(run: EarlierRun): string {
  const [results, edited] = [indexToolResults(run.steps), listEditedPayloads(run.steps)]
  const lines = run.steps.flatMap((step): string[] => {
    if (step.kind === 'model_answer') {
      return step.data.parts.flatMap((part) => (part.type === 'text' ? [`The agent said: ${part.text}`] : []))
    }
    if (step.kind !== 'tool_call') return []
    if (step.data.tool === END_RUN) {
      const { status, reason } = readEnding(step.data.arguments) ?? {}
      return [`The agent ended the run as ${status}: ${reason}`]
    }
    if (!isDeliveryCall(step.data)) return []
    const { source_name, payload } = step.data.delivery
    const sent = edited.get(step.data.call_id) ?? payload
    const result = results.get(step.data.call_id)
    return [`Sent to ${source_name}: ${JSON.stringify(sent)}\n${result?.text ?? 'The outcome is not known.'}`]
  })
  const status = run.status === 'failed' ? `failed (${run.error ?? 'no reason given'})` : run.status
  return [
    `A run of the workflow ${run.workflowName}, which ${status}. It was started with:`,
    startText(run),
    ...(run.isTooLarge ? ['What it did is too much to be shown.'] : lines),
  ].join('\n')
}
