import {
  isNote,
  type JournalStep,
  type NewJournalStep,
  type NoteCode,
  type ToolCallError,
  type ToolCallStep,
  type ToolResultStep,
  toNote,
} from '@workflow-service/contract'
import type { AgentRun, RunFacts } from './agent.ts'

type Step = JournalStep | NewJournalStep

/** The agent's steps: those it resumes from, and those it has appended since. */
export type AgentSteps = ReturnType<typeof openAgentSteps>

/** Opens the agent's steps. Appending writes to the journal first, then to memory. */
export function openAgentSteps(run: AgentRun) {
  const all: Step[] = [...run.steps]
  const append = async (...steps: NewJournalStep[]): Promise<void> => {
    await run.append(steps)
    all.push(...steps)
  }
  return {
    all: all as readonly Step[],
    append,
    /** Adds steps that are written with the next ones, or with the next delivery: see `AgentRun.plan`. */
    plan(...steps: NewJournalStep[]): void {
      run.plan(steps)
      all.push(...steps)
    },
    /** Adds a step that is in the journal already. */
    adopt: (step: NewJournalStep): void => void all.push(step),
    note: (code: NoteCode, text: string) => append(toNote(code, text)),
    hasNote: (code: NoteCode) => all.some((step) => isNote(step, code)),
  }
}

/** The tool calls without a result, in order. */
export function listPendingCalls(steps: readonly Step[]): ToolCallStep[] {
  const results = indexToolResults(steps)
  return listData(steps, 'tool_call').filter(({ call_id }) => !results.has(call_id))
}

/** The data of the steps of this kind, in order. */
export function listData<Kind extends Step['kind']>(steps: readonly Step[], kind: Kind): DataOf<Kind>[] {
  return steps.flatMap((step) => (step.kind === kind ? [step.data as DataOf<Kind>] : []))
}

type DataOf<Kind extends Step['kind']> = Extract<Step, { kind: Kind }>['data']

/** The results of the tool calls by the id of the call. */
export function indexToolResults(steps: readonly Step[]): ReadonlyMap<string, ToolResultStep> {
  return new Map(listData(steps, 'tool_result').map((result) => [result.call_id, result]))
}

/** Records that a tool call was not executed, and why, in words for the model. */
export async function refuseCall(
  steps: AgentSteps,
  { call_id, tool }: Pick<ToolCallStep, 'call_id' | 'tool'>,
  error: ToolCallError,
  text: string,
): Promise<void> {
  await steps.append({ kind: 'tool_result', data: { call_id, tool, ok: false, text, error } })
}

/** The text that a run was started with: the trigger's input message, then the context. */
export function startText({ inputMessage, context }: Pick<RunFacts, 'inputMessage' | 'context'>): string {
  return [inputMessage, context].filter((text) => text !== '').join('\n\n')
}
