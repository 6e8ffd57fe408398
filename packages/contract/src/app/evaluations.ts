import {
  CASE_PAYLOADS_MAX,
  CASES_MAX,
  CONTEXT_MAX_LENGTH,
  EVALUATIONS_KEPT,
  NAME_MAX_LENGTH,
  RULES_MAX_BYTES,
  WORKFLOW_TEXT_MAX_LENGTH,
} from '../limits.ts'
import { Closed, JsonObject, List, Nullable, Optional, type Static } from '../schema/objects.ts'
import { DateTime, Int, Name, named, Str, Text, Uuid } from '../schema/values.ts'
import { RunStepOut } from './runs.ts'
import { NewOrEditedVersion, Version, ListOf } from './common.ts'

export const TrialIn = Closed('TrialIn', 'A text to try a workflow with.', {
  id: Uuid('The id of the trial, chosen by the caller, so that a repeated request tries nothing twice.'),
  context: Text(CONTEXT_MAX_LENGTH, 'The text; white space at both ends is removed.', 1, { format: 'trimmed' }),
  session_id: Nullable(Uuid('The session whose earlier runs the agent reads; null for none.')),
  rules: Optional(Nullable(Text(RULES_MAX_BYTES, "A `rules.yaml` in place of the workflow's; null for that."))),
})

/** What becomes of a text that is tried. */
const TRIED = {
  finished_at: Nullable(DateTime('When the result was known; null before.')),
  error: Nullable(Str('Why the run would fail: a code, a colon and a sentence. Null if it would not.')),
}

export const TrialOut = Closed('TrialOut', 'What a run would send.', {
  id: Uuid('The trial.'),
  context: Str('The text.'),
  created_at: DateTime('When it was asked for.'),
  ...TRIED,
  steps: List(
    RunStepOut,
    'The journal that the run would have, where each payload that would be sent counts as accepted.',
  ),
})
export type TrialOut = Static<typeof TrialOut>

const CasePayload = Closed('CasePayload', 'A payload of a case.', {
  source_id: Uuid('The webhook source.'),
  source_name: Str('Its name.', { maxLength: NAME_MAX_LENGTH }),
  payload: JsonObject('The payload.'),
})
/** A payload that is right for a case, or that an evaluation would send. */
export type CasePayload = Static<typeof CasePayload>

export const CaseIn = Closed('CaseIn', 'A text with the payloads that are right for it.', {
  name: Name(NAME_MAX_LENGTH, 'Its name.'),
  of: Optional(
    Closed('CaseOrigin', 'Takes text and payloads of what the service has; leave `context` and `expected` out.', {
      run_id: Optional(Uuid('Of a run that has succeeded: the payloads that were accepted.')),
      trial_id: Optional(Uuid("Of the person's trial: what a run would send.")),
      result_id: Optional(Uuid('Of a result of the case that exists: what it would send.')),
    }),
  ),
  context: Optional(
    Text(CONTEXT_MAX_LENGTH, 'The text; white space at both ends is removed.', 1, { format: 'trimmed' }),
  ),
  expected: Optional(
    List(CasePayload, 'The payloads that are right, in any order; empty: nothing is sent.', {
      maxItems: CASE_PAYLOADS_MAX,
    }),
  ),
  version: NewOrEditedVersion,
})
export type CaseIn = Static<typeof CaseIn>

export const CaseRowOut = Closed('CaseRowOut', 'A case in the list.', {
  ...named('The case.'),
  text: Str('The beginning of its text.'),
  payload_count: Int('The payloads that are right.'),
  run_id: Nullable(Uuid('The run that it was kept of.')),
  saved_by: Str('Who saved it last.'),
  created_at: DateTime('When it was kept.'),
  version: Version,
})
export type CaseRowOut = Static<typeof CaseRowOut>
export const CaseList = ListOf('CaseList', CaseRowOut, `The cases of a workflow, oldest first; at most ${CASES_MAX}.`)
export const CaseOut = Closed('CaseOut', 'A case.', {
  ...CaseRowOut.properties,
  context: Str('The text.'),
  expected: List(CasePayload, 'The payloads that are right.'),
})
export type CaseOut = Static<typeof CaseOut>

export const EvaluationIn = Closed('EvaluationIn', 'What to try the cases of a workflow with.', {
  id: Uuid('The evaluation, chosen by the caller, so that a repeated request starts nothing twice.'),
  model: Nullable(Text(200, "The name of a model, or `builtin`; null: the workflow's.", 1)),
  version_id: Nullable(Uuid('A version of the workflow; null: as it is now.')),
  description: Nullable(Text(WORKFLOW_TEXT_MAX_LENGTH, 'Another task, which is not saved; null: that of the version.')),
  rules: Nullable(
    Text(RULES_MAX_BYTES, 'Another `rules.yaml`, which is not saved; null: that of the version, if it has one.'),
  ),
})
export type EvaluationIn = Static<typeof EvaluationIn>

export const EvaluationOut = Closed('EvaluationOut', 'Cases that are tried together.', {
  id: Uuid('The evaluation.'),
  model: Nullable(Str('The model; null: the default of the service.')),
  version_number: Int('The version of the workflow.'),
  description: Nullable(Str('The task that replaced that of the version.')),
  rules: Nullable(Str('The rules that replaced those of the version.')),
  started_by: Str('Who started it.'),
  created_at: DateTime('When it was started.'),
  finished_at: Nullable(DateTime('When the last case was done; null before.')),
  total: Int('Its cases.'),
  done: Int('Those with a result.'),
  same: Int('Those with exactly the payloads that are right.'),
  cost_micros: Nullable(Int('What the answers of models cost, in millionths of the currency; null without prices.')),
  duration_ms: Int('The time of all cases.'),
})
export type EvaluationOut = Static<typeof EvaluationOut>
export const EvaluationList = ListOf('EvaluationList', EvaluationOut, `Newest first; at most ${EVALUATIONS_KEPT}.`)

export const CaseDifference = Closed('CaseDifference', 'Where a payload is not the one that is right.', {
  source_name: Str('The webhook source.'),
  field: Str('Its path, such as `lines.0.price`; empty: the whole payload.'),
  expected: Nullable(Str('The value that is right, as JSON; null: none.')),
  actual: Nullable(Str('The value that would be sent, as JSON; null: none.')),
})
export type CaseDifference = Static<typeof CaseDifference>

export const EvaluationDetailOut = Closed('EvaluationDetailOut', 'An evaluation with its results.', {
  ...EvaluationOut.properties,
  results: List(
    Closed('EvaluationResultOut', 'What a case would send.', {
      id: Uuid('The result.'),
      case_id: Uuid('The case.'),
      case_name: Str('Its name.'),
      case_version: Uuid('The version of the case that was tried; before it is tried, the one that is stored.'),
      ...TRIED,
      payload_count: Nullable(Int('The payloads that it would send; null if they are too large to keep.')),
      differences: List(CaseDifference, 'At most 20; none if they are the same.'),
      cost_micros: Nullable(Int('What it cost; null without prices.')),
      duration_ms: Nullable(Int('How long it took.')),
    }),
    'In the order of the cases.',
  ),
})
export type EvaluationDetailOut = Static<typeof EvaluationDetailOut>
