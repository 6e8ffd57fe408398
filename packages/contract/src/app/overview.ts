import { OVERVIEW_WAITING_MAX } from '../limits.ts'
import { Closed, List, Nullable, type Static } from '../schema/objects.ts'
import { Bool, DateTime, Int, Str, StringEnum, Text, Uuid } from '../schema/values.ts'
import { Counts, ListOf } from './common.ts'

/** What failed for one reason and is not done: docs/application.md, "Attention". */
export const AttentionOut = Closed('AttentionOut', 'Failures of one webhook source or workflow with one reason.', {
  kind: StringEnum(['run_failed', 'delivery_not_accepted', 'source_not_verified'], 'What failed.'),
  id: Uuid('The webhook source; of failed runs the workflow.'),
  title: Str('Its name.'),
  code: Str('The outcome of the deliveries; of failed runs the code of their error.'),
  status: Nullable(Int('The status of the answers.', { minimum: 0, maximum: 999 })),
  reason: Str('What happened to the newest, as a sentence.'),
  newest_id: Uuid('The newest delivery or run.'),
  at: DateTime('When that was.'),
  count: Int('How many are not done.'),
  is_more: Bool('Whether there may be more, since only the newest 1,000 are counted.'),
})
export type AttentionOut = Static<typeof AttentionOut>

export const AttentionDoneIn = Closed('AttentionDoneIn', 'Failures that are done, as the overview groups them.', {
  kind: AttentionOut.properties.kind,
  id: AttentionOut.properties.id,
  code: Text(100, 'The code of the group.'),
  status: AttentionOut.properties.status,
  until: DateTime('Only what failed up to this time: the `at` of the group. Newer ones stay.'),
})
export type AttentionDoneIn = Static<typeof AttentionDoneIn>

export const AttentionDoneOut = Closed('AttentionDoneOut', 'What was marked as done.', {
  done: Int('How many runs or deliveries.'),
  is_more: Bool('Whether some are left: call again.'),
})

export const OverviewOut = Closed('OverviewOut', 'The state of the organization at one glance.', {
  steps: Closed('FirstStepsOut', 'The first steps, derived from data.', {
    has_verified_source: Bool('A webhook source is verified.'),
    has_startable_workflow: Bool('A workflow can be started.'),
    has_api_key: Bool('An API key is in force.'),
    has_run: Bool('A person has started a run, or ten runs have begun.'),
    has_delivery: Bool('A payload was sent.'),
  }),
  starts: Counts,
  deliveries: Counts,
  budgets: List(
    Closed('NearlySpentOut', 'A budget of which 80 % or more are spent.', {
      workflow_id: Nullable(Uuid('Whose budget of the day it is; null: the budget of the organization for the month.')),
      name: Str('Its name.'),
      budget: Int('Millionths of the currency.'),
      spent: Int('Millionths of the currency.'),
      currency: Nullable(Str('An ISO 4217 code.')),
    }),
    'For admins; at most 20.',
  ),
  waiting_runs: Int(`Runs that wait for an approval, at most ${OVERVIEW_WAITING_MAX}.`),
  attention: List(
    AttentionOut,
    'The newest first, at most 50 groups of the newest 1,000 failed runs and deliveries that are not done, of the last 7 days.',
  ),
})
export type OverviewOut = Static<typeof OverviewOut>

export const SearchOut = ListOf(
  'SearchOut',
  Closed('FoundOut', 'A thing of the organization.', {
    kind: StringEnum(
      ['workflow', 'webhook_source', 'lookup', 'run', 'session', 'delivery', 'user', 'api_key'],
      'What it is.',
    ),
    id: Uuid('Its id.'),
    title: Str('Its name, or what it belongs to.'),
    detail: Str('One line more; may be empty.'),
  }),
  'What was found: best first, at most 20.',
)

export type SearchOut = Static<typeof SearchOut>
