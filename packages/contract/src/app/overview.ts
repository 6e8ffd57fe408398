import { Closed, List, Nullable, type Static, Unknown } from '../schema/objects.ts'
import { Bool, DateTime, Int, Str, StringEnum, Text, Uuid } from '../schema/values.ts'
import { ListOf } from './common.ts'
import { Type } from '../schema/type.ts'

const Counts = Type.Unsafe<Record<string, number>>({
  type: 'object',
  additionalProperties: { type: 'integer' },
  description: 'Counts by name; a name without any is absent.',
})
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
  waiting_runs: Int('Runs that wait for an approval, at most 200.'),
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

export const USAGE_GROUPS = ['workflow', 'webhook_source', 'api_key', 'model', 'lookup'] as const
export const UsageOut = Closed('UsageOut', 'Usage by hour or day.', {
  bucket: StringEnum(['hour', 'day'], 'The width of a bucket: hours up to 3 days, then days (UTC).'),
  currency: Nullable(Str('The currency of costs, as an ISO 4217 code; null if no model has prices.')),
  buckets: List(
    Closed('UsageBucketOut', 'One bucket.', {
      at: DateTime('Its beginning.'),
      starts: Counts,
      deliveries: Counts,
    }),
    'Oldest first; also the empty ones.',
  ),
  groups: List(
    Closed('UsageGroupOut', 'The usage of one workflow, webhook source, API key, model or look-up in the period.', {
      id: Nullable(
        Uuid('What was used; null: a model, what is deleted, the others, or none, such as the key of a scheduled run.'),
      ),
      name: Str('Its name.'),
      starts: Counts,
      deliveries: Counts,
      run_ms_p50: Nullable(Int('Median time of a run, ± 5 %.')),
      run_ms_p95: Nullable(Int('95th percentile of the time of a run, ± 5 %.')),
      tokens: Int('Input and output tokens of models.'),
      cost_micros: Int('What models cost, in millionths of `currency`.'),
      lookup_calls: Int('Calls of look-ups, without those of trials.'),
      lookup_bytes: Int('The bytes that were read of their answers.'),
    }),
    'The most used first; beyond 100, the last one is of all others.',
  ),
})
/**
 * A member's usage counts only the workflows that the member sees, and payloads without a run. By webhook source, API
 * key, model and look-up it has no entries: what other workflows sent to a source would be in it. The newest hour is
 * counted when it is read, of at most 20,000 starts, and as many deliveries of each source; closed hours are rolled up
 * and kept.
 */
export type UsageOut = Static<typeof UsageOut>

export const AuditChangeOut = Closed('AuditChangeOut', 'One changed field.', {
  field: Str('The field.'),
  old: Unknown('The value before; null for a new thing. Never a secret.'),
  new: Unknown('The value after; null for a deleted thing. Never a secret.'),
})

export const AuditEventOut = Closed('AuditEventOut', 'A change, sign-in, refusal or link.', {
  id: Uuid('The event.'),
  at: DateTime('When.'),
  actor: Closed('AuditActorOut', 'Who did it.', {
    kind: StringEnum(
      ['person', 'operator', 'service', 'stranger'],
      'A person in the application, an operator with `wf`, the service itself, or a caller who is not signed in.',
    ),
    id: Nullable(Uuid('The user.')),
    name: Str('The name at that time.'),
  }),
  action: Str('What was done, such as `webhook_source.saved`.'),
  target: Nullable(
    Closed('AuditTargetOut', 'What it was done to.', {
      kind: Str('The kind, such as `workflow`.'),
      id: Nullable(Uuid('Its id.')),
      name: Str('Its name at that time.'),
    }),
  ),
  changes: List(AuditChangeOut, 'Old and new values, without secrets, keys, tokens and passwords.'),
  request_id: Nullable(Str('The request.')),
  address: Nullable(Str("The actor's IP address.")),
})
export type AuditEventOut = Static<typeof AuditEventOut>

/** What a notice of the event stream can name: the page reads again what it shows of it. */
export const EVENT_TOPICS = [
  'workflows',
  'webhook_sources',
  'lookups',
  'deliveries',
  'runs',
  'sessions',
  'api_keys',
  'users',
  'organization',
] as const
export type EventTopic = (typeof EVENT_TOPICS)[number]

export const ManifestOut = Closed('ManifestOut', 'A manifest.', {
  yaml: Str('The manifest; applying it changes nothing.'),
})
