import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import { Meter } from './meter.ts'

/** What the expressions of a run see (docs/rules.md, "Variables"). */
export interface RuleInput {
  /**
   * The values that the context names. A Map whose `get` folds names finds them in any spelling; if it throws, no
   * operator absorbs that.
   */
  readonly fields: ReadonlyMap<string, unknown>
  /** The items of a context that is a list in JSON; empty for any other. */
  readonly items: readonly unknown[]
  readonly context: string
  readonly inputMessage: string
  readonly workflow: { readonly name: string; readonly description: string }
  /** The time when the start was accepted. */
  readonly now: Date
}

/** The evaluation of one `rules.yaml` in one run: its input, and the work done so far. */
export interface Evaluation {
  readonly variables: Record<string, unknown>
  readonly meter: Meter
}

export function createEvaluation({ inputMessage, workflow, now, ...given }: RuleInput): Evaluation {
  const { name, description } = workflow
  const variables = {
    // Without a prototype, so that `constructor` is not a variable.
    __proto__: null,
    ...given,
    input_message: inputMessage,
    workflow: { name, description },
    now: timestampFromDate(now),
  }
  return { variables, meter: new Meter() }
}

/** The same evaluation for one item of a `for_each`. Its work counts together with that of the others. */
export function withItem(evaluation: Evaluation, item: unknown): Evaluation {
  return { ...evaluation, variables: { __proto__: null, ...evaluation.variables, item } }
}

/** Evaluating an expression is synchronous, so one is under way at a time. */
let current: Evaluation | undefined

/** The meter of the evaluation that is under way. */
export function currentMeter(): Meter {
  return current!.meter
}

/** Runs the work as part of the evaluation: what expressions do counts there. */
export function during<Result>(next: Evaluation, work: () => Result): Result {
  const { stackTraceLimit } = Error
  current = next
  // Every error of CEL would record a stack, which takes time, and a loop can absorb thousands of them.
  Error.stackTraceLimit = 0
  try {
    return work()
  } finally {
    Error.stackTraceLimit = stackTraceLimit
    current = undefined
  }
}
