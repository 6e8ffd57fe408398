import { END_RUN } from '@workflow-service/contract'
import type { EarlierRun } from '@workflow-service/database'
import type { AgentRun } from '../agent.ts'
import { indexToolResults } from '../agent-steps.ts'
import { isDeliveryCall } from '../deliveries.ts'
import { startText } from '../start-text.ts'
import { readEnding } from './model-tools.ts'

/** Earlier runs to read at most. */
const MAX_EARLIER_RUNS = 50
/**
 * UTF-8 bytes per token: fewer than in English text, about as many as in Chinese text. The estimate is rarely too low.
 */
export const BYTES_PER_TOKEN = 3

/** The session's earlier runs as a part of the prompt. */
export interface PromptHistory {
  /** Oldest run first; empty when there is none. */
  readonly text: string
  readonly shownRuns: number
  readonly totalRuns: number
}

/**
 * Formats the newest earlier runs of the session that fit into the token budget; if `isHalved`, into half of what they
 * take then. A run is shown whole or not at all.
 */
export async function formatHistory(
  run: Pick<AgentRun, 'history'>,
  { budgetTokens, isHalved }: { readonly budgetTokens: number; readonly isHalved: boolean },
): Promise<PromptHistory> {
  const { runs, total } = await run.history(MAX_EARLIER_RUNS)
  const texts = runs.map(formatRun)
  const fitting = takeNewest(texts, budgetTokens)
  const shown = isHalved ? takeNewest(fitting, Math.floor(countTokens(fitting) / 2)) : fitting
  return { text: shown.join('\n\n'), shownRuns: shown.length, totalRuns: total }
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
  const results = indexToolResults(run.steps)
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
    const result = results.get(step.data.call_id)
    return [`Sent to ${source_name}: ${JSON.stringify(payload)}\n${result?.text ?? 'The outcome is not known.'}`]
  })
  const status = run.status === 'failed' ? `failed (${run.error ?? 'no reason given'})` : run.status
  return [
    `A run of the workflow ${run.workflowName}, which ${status}. It was started with:`,
    startText(run),
    ...lines,
  ].join('\n')
}
