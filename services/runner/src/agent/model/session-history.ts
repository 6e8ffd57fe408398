import type { AgentRun, EarlierRun } from '../agent.ts'
import { indexToolResults } from '../agent-steps.ts'
import { isDeliveryCall } from '../deliveries.ts'
import { startText } from '../start-text.ts'

/** Earlier runs to read at most. */
const MAX_EARLIER_RUNS = 50
/** UTF-8 bytes per token: fewer than in English text, about as many as in Chinese text. The estimate is rarely too low. */
const BYTES_PER_TOKEN = 3

/** The session's earlier runs as a part of the prompt. */
export interface PromptHistory {
  /** Oldest run first; empty when there is none. */
  readonly text: string
  readonly shownRuns: number
  readonly totalRuns: number
}

/** Formats the newest earlier runs of the session that fit into the token budget. A run is shown whole or not at all. */
export async function formatHistory(run: AgentRun, budgetTokens: number): Promise<PromptHistory> {
  const history = await run.history(MAX_EARLIER_RUNS)
  const shown: string[] = []
  let tokens = 0
  for (const earlier of history.runs.toReversed()) {
    const text = formatRun(earlier)
    tokens += Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN)
    if (tokens > budgetTokens) break
    shown.unshift(text)
  }
  return { text: shown.join('\n\n'), shownRuns: shown.length, totalRuns: history.total }
}

function formatRun(run: EarlierRun): string {
  const results = indexToolResults(run.steps)
  const lines = run.steps.flatMap((step): string[] => {
    if (step.kind === 'model_answer') {
      return step.data.parts.flatMap((part) => (part.type === 'text' ? [`The agent said: ${part.text}`] : []))
    }
    if (step.kind !== 'tool_call' || !isDeliveryCall(step.data)) return []
    const { source_name, payload } = step.data.delivery
    const result = results.get(step.data.call_id)
    return [`Sent to ${source_name}: ${JSON.stringify(payload)}\n${result?.text ?? 'The outcome is not known.'}`]
  })
  const status = run.status === 'succeeded' ? 'succeeded' : `failed (${run.error ?? 'no reason given'})`
  return [
    `A run of the workflow ${run.workflowName}, which ${status}. It was started with:`,
    startText(run),
    ...lines,
  ].join('\n')
}
