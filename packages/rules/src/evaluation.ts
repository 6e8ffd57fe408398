import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import { Meter } from './meter.ts'
import type { JsonValue } from './to-json.ts'

/**
 * Conversions by the rules of the agent that evaluates the expressions. Each throws an Error with the reason if the
 * value cannot be converted.
 */
export interface RuleConversions {
  number(value: JsonValue): number
  text(value: JsonValue): string
  /** `2026-01-31`. */
  date(value: JsonValue): string
  yes(value: JsonValue): boolean
  list(value: JsonValue): readonly JsonValue[]
}

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
  readonly conversions: RuleConversions
}

/** The evaluation of one `rules.yaml` in one run: its input, and the work done so far. */
export interface Evaluation {
  readonly variables: Record<string, unknown>
  readonly conversions: RuleConversions
  readonly meter: Meter
}

export function createEvaluation({ inputMessage, workflow, now, conversions, ...given }: RuleInput): Evaluation {
  const { name, description } = workflow
  const variables = {
    // Without a prototype, so that `constructor` is not a variable.
    __proto__: null,
    ...given,
    input_message: inputMessage,
    workflow: { name, description },
    now: timestampFromDate(now),
  }
  return { variables, conversions, meter: new Meter() }
}

/** The same evaluation for one item of a `for_each`. Its work counts together with that of the others. */
export function withItem(evaluation: Evaluation, item: unknown): Evaluation {
  return { ...evaluation, variables: { __proto__: null, ...evaluation.variables, item } }
}
