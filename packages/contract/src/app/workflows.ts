import { RUN_STATUSES } from '../enumerations.ts'
import {
  CONTEXT_MAX_LENGTH,
  FILE_MEDIA_CONTENT_MAX_LENGTH,
  FILE_NAME_MAX_LENGTH,
  FILE_PATH_MAX_DEPTH,
  NAME_MAX_LENGTH,
  RULES_MAX_BYTES,
  SLUG_MAX_LENGTH,
  WORKFLOW_NAME_MAX_LENGTH,
  WORKFLOW_TEXT_MAX_LENGTH,
} from '../limits.ts'
import { MEDIA_KINDS } from '../media-file.ts'
import { AUTO_RUN_FREQUENCIES, TriggerOut } from '../public/resources.ts'
import { ScheduleTiming } from '../schedule-timing.ts'
import { Closed, JsonObject, List, Nullable, Optional, Parameters, type Static } from '../schema/objects.ts'
import { Bool, DateTime, Int, Name, named, Str, StringEnum, Text, Uuid } from '../schema/values.ts'
import { AuditChangeOut } from './audit.ts'
import { EditedVersion, NewOrEditedVersion, Version, VERSION_DESCRIPTION, ListOf } from './common.ts'

const RunSummaryOut = Closed('RunSummaryOut', 'A run in a few words.', {
  id: Uuid('The run.'),
  status: StringEnum(RUN_STATUSES, 'Its status.'),
  error: Nullable(Str('Why it failed.')),
  created_at: DateTime('When it was accepted.'),
})
const AutoRunStateOut = Closed('AutoRunStateOut', 'The schedule.', {
  enabled: Nullable(Bool('Null: never configured.')),
  frequency: Nullable(StringEnum(AUTO_RUN_FREQUENCIES, 'Null without a schedule.')),
  timing: Nullable(ScheduleTiming),
  next_at: List(DateTime('A time at which the workflow runs.'), 'The next five times; empty when it is off.'),
  version: Version,
})
export const WorkflowRowOut = Closed('WorkflowRowOut', 'A workflow in the list.', {
  ...named('The workflow.'),
  scope: Str('`company_wide` or `only_me`.'),
  is_active: Bool('Whether it can be started.'),
  trigger_count: Int('Its triggers.'),
  next_run_at: Nullable(DateTime('When the schedule runs it next.')),
  last_run: Nullable(RunSummaryOut),
  updated_at: DateTime('Its last change.'),
})
export type WorkflowRowOut = Static<typeof WorkflowRowOut>

const AppTriggerOut = Closed('AppTriggerOut', 'A trigger.', { ...TriggerOut.properties, version: Version })
/** An amount of money of at most a billion. */
export const Micros = (description: string) =>
  Nullable(Int(`${description}, in millionths of the currency; null: none.`, { minimum: 0, maximum: 1e15 }))
const WorkflowAgentValues = {
  model: Nullable(Text(200, 'The name of a model, or `builtin`; null: the default of the service.', 1)),
  run_budget: Micros('The budget of a run'),
  day_budget: Micros('The budget of the workflow for a day (UTC)'),
  when_spent: StringEnum(
    ['fail', 'wait'],
    'Whether a run that reaches the budget of the day, or of the organization for the month, fails or waits for the next.',
  ),
}
export const WorkflowDetailOut = Closed('WorkflowDetailOut', 'A workflow, as the editor shows it.', {
  ...named('The workflow.'),
  description: Str("The agent's task."),
  scope: Str('`company_wide` or `only_me`.'),
  is_active: Bool('Whether it can be started.'),
  auto_run: AutoRunStateOut,
  agent: Closed('WorkflowAgentOut', 'What executes the runs.', { ...WorkflowAgentValues, version: Version }),
  users: List(
    Closed('WorkflowUserOut', 'A person with access.', {
      id: Uuid('The user.'),
      email: Str('Email address.'),
      name: Str('Name; may be empty.'),
    }),
    'The people that the workflow lists; for `company_wide` they matter only after a change of scope.',
  ),
  users_version: Version,
  triggers: List(AppTriggerOut, 'Oldest first.'),
  files: List(
    Closed('WorkflowFileOut', 'A file without its content.', {
      ...named('The file.'),
      path: List(Str('A folder.'), 'Folders from the top down.'),
      size: Int('Bytes in UTF-8.'),
      version: Version,
    }),
    'By folder, then name.',
  ),
  created_at: DateTime('When it was made.'),
  updated_at: DateTime('Its last change.'),
  version: Version,
})
export type WorkflowDetailOut = Static<typeof WorkflowDetailOut>

export const WorkflowWarningOut = Closed('WorkflowWarningOut', 'Why runs may not do what the author wants.', {
  code: Str(
    '`no_source_named`, `unknown_source_named`, `rules_needed`, or `rules_invalid`: the workflow has a `rules.yaml` with an error, or with a field that the example of its webhook source does not have. More may be added.',
  ),
  message: Str('For people, without a period at the end.'),
  excerpt: Str('What it is about: a name, or a sentence of the description; may be empty.'),
})
export type WorkflowWarningOut = Static<typeof WorkflowWarningOut>
export const WorkflowReadOut = Closed(
  'WorkflowReadOut',
  'A workflow, and what the built-in agent cannot follow in it.',
  {
    ...WorkflowDetailOut.properties,
    warnings: List(
      WorkflowWarningOut,
      'None if the built-in agent can follow the workflow. Where a model executes its runs, only names that no source has.',
    ),
  },
)
export type WorkflowReadOut = Static<typeof WorkflowReadOut>

const WorkflowValues = {
  name: Name(WORKFLOW_NAME_MAX_LENGTH, 'Its name.'),
  description: Text(WORKFLOW_TEXT_MAX_LENGTH, "The agent's task; names the webhook sources to send to."),
  scope: StringEnum(['company_wide', 'only_me'], 'Who has access: everyone, or the listed people.'),
}
export const CreateWorkflowIn = Closed('CreateWorkflowIn', 'A new workflow. It begins inactive, without triggers.', {
  id: Uuid('The id of the new workflow, chosen by the caller.'),
  ...WorkflowValues,
})
export const SaveWorkflowIn = Closed('SaveWorkflowIn', 'New values of a workflow.', {
  ...WorkflowValues,
  version: EditedVersion,
})
export type SaveWorkflowIn = Static<typeof SaveWorkflowIn>
export const DuplicateWorkflowIn = Closed('DuplicateWorkflowIn', 'A copy with triggers, files and people, inactive.', {
  id: Uuid('The id of the copy, chosen by the caller.'),
  name: Name(WORKFLOW_NAME_MAX_LENGTH, 'Its name.'),
})
export const SetActiveIn = Closed('SetActiveIn', 'Switches a workflow on or off.', {
  is_active: Bool('Whether it can be started.'),
})
export const SaveAutoRunIn = Closed(
  'SaveAutoRunIn',
  'The schedule. Without a timing, it recurs in UTC at the minute at which it was switched on.',
  {
    enabled: Bool('Whether the schedule is on.'),
    frequency: StringEnum(AUTO_RUN_FREQUENCIES, 'How often.'),
    timing: Optional(Nullable(ScheduleTiming)),
    version: EditedVersion,
  },
)
export type SaveAutoRunIn = Static<typeof SaveAutoRunIn>
export const SaveWorkflowAgentIn = Closed(
  'SaveWorkflowAgentIn',
  'What executes the runs. Only admins change budgets; members choose among the offered models.',
  { ...WorkflowAgentValues, version: EditedVersion },
)
export type SaveWorkflowAgentIn = Static<typeof SaveWorkflowAgentIn>
export const ModelList = ListOf(
  'ModelList',
  Closed('ModelOut', 'A model, or the built-in agent.', {
    name: Str('What workflows choose.'),
    model: Str('PROVIDER:NAME, or `builtin`.'),
    is_default: Bool('Whether it executes workflows that choose nothing.'),
    is_offered: Bool('Whether members may choose it.'),
    data_region: Nullable(Str('Where its API processes data; null: not known.')),
    currency: Nullable(Str('The currency of its prices, as an ISO 4217 code; null: without prices.')),
    fallback: Nullable(Str('The model that takes over while its API is unavailable.')),
    reads: List(StringEnum(MEDIA_KINDS, 'A kind of files.'), 'What it reads besides text.'),
  }),
  'What can execute runs, by name.',
)
export type ModelList = Static<typeof ModelList>
export const SaveWorkflowUsersIn = Closed('SaveWorkflowUsersIn', 'The people with access.', {
  user_ids: List(Uuid('A user of the organization.'), 'All of them.', { maxItems: 5_000 }),
  version: EditedVersion,
})
const SlugAndName = (title: string, description: string) =>
  Closed(title, description, {
    slug: Text(SLUG_MAX_LENGTH, 'For machines.', 1),
    name: Name(NAME_MAX_LENGTH, 'For people.'),
  })
export const SaveTriggerIn = Closed('SaveTriggerIn', 'A trigger.', {
  name: Name(WORKFLOW_NAME_MAX_LENGTH, 'May be empty.', 0),
  is_active: Bool('False: paused.'),
  trigger_source: SlugAndName('TriggerSourceIn', 'What fires it; `api` for the public API.'),
  events: List(SlugAndName('TriggerEventIn', 'An event that fires it.'), 'The events.', { maxItems: 100 }),
  filters: Nullable(JsonObject('Extra conditions, as configured.')),
  input_message: Text(WORKFLOW_TEXT_MAX_LENGTH, 'Precedes the text that the workflow is started with.'),
  subagent_sources: List(
    Closed('SubagentSourceIn', 'A source for subagents.', {
      id: Nullable(Uuid('Null for `platform_internal`.')),
      name: Name(NAME_MAX_LENGTH, 'Its name.'),
      type: Text(SLUG_MAX_LENGTH, 'Its type.', 1),
    }),
    'The sources.',
    { maxItems: 100 },
  ),
  version: NewOrEditedVersion,
})
export type SaveTriggerIn = Static<typeof SaveTriggerIn>
export const AppFileOut = Closed('AppFileOut', 'A file with its content.', {
  ...named('The file.'),
  path: List(Str('A folder.'), 'Folders from the top down.'),
  content: Str('The text; of a PDF or an image, the file in base64.'),
  version: Version,
})
export type AppFileOut = Static<typeof AppFileOut>
export const SaveFileIn = Closed('SaveFileIn', 'A file.', {
  name: Name(FILE_NAME_MAX_LENGTH, 'Its name.'),
  path: List(Name(FILE_NAME_MAX_LENGTH, 'A folder.'), 'Folders from the top down.', { maxItems: FILE_PATH_MAX_DEPTH }),
  content: Text(
    FILE_MEDIA_CONTENT_MAX_LENGTH,
    'The text, at most 1 MiB in UTF-8; of a PDF or an image, by the extension of its name, the file in base64.',
  ),
  version: NewOrEditedVersion,
})
export type SaveFileIn = Static<typeof SaveFileIn>
export const CheckRulesIn = Closed('CheckRulesIn', 'The text of rules.', {
  content: Text(RULES_MAX_BYTES, 'The text.'),
})
export const RulesCheckOut = Closed('RulesCheckOut', 'What is wrong with rules.', {
  errors: List(
    Closed('RulesErrorOut', 'An error.', {
      line: Nullable(Int('From 1; null: of the whole file.')),
      message: Str('With its place.'),
    }),
    'None if they can be followed. Fields that an example does not have are listed, but do not keep rules from being saved.',
  ),
})
export const VersionQuery = Parameters({
  version: Str(VERSION_DESCRIPTION, { maxLength: 100 }),
})

export const READINESS_CODES = ['workflow_inactive', 'no_active_api_trigger', 'no_users_with_access'] as const
export const ReadinessOut = Closed('ReadinessOut', 'Whether a workflow can start, by the rules of the public API.', {
  can_start: Bool('Whether a start would be accepted.'),
  checks: List(
    Closed('ReadinessCheckOut', 'One rule.', {
      code: StringEnum(READINESS_CODES, 'The error that a start gets when the rule is not met.'),
      is_met: Bool('Whether it is met.'),
    }),
    'In the order in which a start checks them.',
  ),
  sources: List(
    Closed('NamedSourceOut', 'A webhook source that the workflow names.', {
      ...named('The webhook source.'),
      is_verified: Bool('Whether its endpoint has confirmed.'),
    }),
    'The webhook sources that the `rules.yaml` or else the description names, in the order of appearance.',
  ),
  unknown_names: List(
    Str('A name in quotation marks that no webhook source has.'),
    'Names that the description seems to use for webhook sources that do not exist; at most 20.',
  ),
  warnings: List(WorkflowWarningOut, 'As the warnings of the workflow; they do not keep a start from being accepted.'),
})
export type ReadinessOut = Static<typeof ReadinessOut>

export const AppStartIn = Closed('AppStartIn', 'Starts a workflow.', {
  id: Uuid('The id of the run, chosen by the caller, so that a repeated request starts nothing new.'),
  context: Text(CONTEXT_MAX_LENGTH, 'The text; white space at both ends is removed.', 1, { format: 'trimmed' }),
  session_id: Nullable(Uuid('An open session; null opens a new one.')),
})
export const StartScheduledIn = Closed('StartScheduledIn', 'Starts a workflow as its schedule does.', {
  id: Uuid('The id of the run, chosen by the caller, so that a repeated request starts nothing new.'),
})
export const AppStartOut = Closed('AppStartOut', 'The start was accepted.', {
  run_id: Uuid('The run.'),
  session_id: Uuid('Its session.'),
})

export const WorkflowVersionOut = Closed('WorkflowVersionOut', 'What a save made of a workflow.', {
  id: Uuid('The version.'),
  number: Int('From 1.'),
  created_at: DateTime('When it was saved.'),
  saved_by: Nullable(Str('The name of the person, or `operator`; null: not known.')),
  parts: List(
    StringEnum(['name', 'description', 'triggers', 'files'], 'A part.'),
    'What differs from the version before.',
  ),
})
export type WorkflowVersionOut = Static<typeof WorkflowVersionOut>
export const WorkflowVersionList = ListOf(
  'WorkflowVersionList',
  WorkflowVersionOut,
  'The newest 100 of 16 MiB, or of less in an organization of more than 16 workflows.',
)
export const VersionCompareQuery = Parameters({
  with: Optional(StringEnum(['previous', 'newest'], 'The version before, or the newest one.', { default: 'previous' })),
})
export const WorkflowVersionDetailOut = Closed('WorkflowVersionDetailOut', 'A version, compared with another one.', {
  ...WorkflowVersionOut.properties,
  changes: List(AuditChangeOut, 'The differences, in the order of time. Of a file, the first 100,000 characters.'),
})
export const RestoreVersionIn = Closed('RestoreVersionIn', 'Restores a version.', {
  newest: Int('The number of the newest version that the person has seen.', { minimum: 1 }),
})
