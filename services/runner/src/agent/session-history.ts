import { isDeliveryCall } from './deliveries.ts'
import type { AgentRun, SessionHistory, EarlierRun } from './agent.ts'
import { startText } from './run-text.ts'

/** More earlier runs than this are never asked for: the budget ends sooner. */
const MAX_TURNS = 50

/** The session so far as a model is told it. */
export interface PromptHistory {
  /** The earlier runs, oldest first, as text; empty when there are none. */
  readonly text: string
  readonly shownRuns: number
  readonly totalRuns: number
}

/** The newest earlier runs of the session that fit into the budget, whole: older ones are left out, never cut. */
export async function formatHistory(run: AgentRun, budgetTokens: number): Promise<PromptHistory> {
  const history: SessionHistory = await run.history(MAX_TURNS)
  const told: string[] = []
  let tokens = 0
  for (const turn of history.turns.toReversed()) {
    const text = formatRun(turn)
    tokens += estimateTokens(text)
    if (tokens > budgetTokens) break
    told.unshift(text)
  }
  return { text: told.join('\n\n'), shownRuns: told.length, totalRuns: history.total }
}

/**
 * About how many tokens a model makes of the text. Three UTF-8 bytes each is more than English takes and about what
 * Chinese does: a budget that is kept rather than used up.
 */
export function estimateTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / 3)
}

function formatRun(turn: EarlierRun): string {
  const results = new Map(
    turn.steps.flatMap((step) => (step.kind === 'tool_result' ? [[step.data.call_id, step.data]] : [])),
  )
  const lines = turn.steps.flatMap((step): string[] => {
    if (step.kind === 'model_answer') {
      return step.data.parts.flatMap((part) => (part.type === 'text' ? [`The agent said: ${part.text}`] : []))
    }
    if (step.kind !== 'tool_call' || !isDeliveryCall(step.data)) return []
    const { source_name, payload } = step.data.delivery
    const outcome = results.get(step.data.call_id)?.text ?? 'The outcome is not known.'
    return [`Sent to ${source_name}: ${JSON.stringify(payload)}\n${outcome}`]
  })
  const status = turn.status === 'succeeded' ? 'succeeded' : `failed (${turn.error ?? 'without a reason'})`
  return [
    `A run of the workflow ${turn.workflowName}, which ${status}. It was started with:`,
    startText(turn),
    ...lines,
  ].join('\n')
}
