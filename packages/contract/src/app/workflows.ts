import { type Static, Type } from 'typebox'
import {
  CONTEXT_MAX_LENGTH,
  FILE_CONTENT_MAX_BYTES,
  FILE_NAME_MAX_LENGTH,
  FILE_PATH_MAX_DEPTH,
  NAME_MAX_LENGTH,
  SLUG_MAX_LENGTH,
  WORKFLOW_NAME_MAX_LENGTH,
  WORKFLOW_TEXT_MAX_LENGTH,
} from '../limits.ts'
import { AUTO_RUN_FREQUENCIES, TriggerOut } from '../public/resources.ts'
import { DateTime, JsonObject, Nullable, StringEnum, Uuid } from '../schema/types.ts'
import {
  Closed,
  EditedVersion,
  Name,
  NewOrEditedVersion,
  PageOf,
  RUN_STATUSES,
  Text,
  Version,
  VERSION_DESCRIPTION,
} from './common.ts'

const RunSummaryOut = Closed('RunSummaryOut', 'A run in a few words.', {
  id: Uuid({ description: 'The run.' }),
  status: StringEnum(RUN_STATUSES, { description: 'Its status.' }),
  error: Nullable(Type.String({ description: 'Why it failed.' })),
  created_at: DateTime({ description: 'When it was accepted.' }),
})
const AutoRunStateOut = Closed('AutoRunStateOut', 'The schedule.', {
  enabled: Nullable(Type.Boolean({ description: 'Null: never configured.' })),
  frequency: Nullable(StringEnum(AUTO_RUN_FREQUENCIES, { description: 'Null without a schedule.' })),
  next_at: Type.Array(DateTime({ description: 'A time at which the workflow runs.' }), {
    description: 'The next three times; empty when it is off.',
  }),
  version: Version,
})
export const WorkflowRowOut = Closed('WorkflowRowOut', 'A workflow in the list.', {
  id: Uuid({ description: 'The workflow.' }),
  name: Type.String({ description: 'Its name.' }),
  scope: Type.String({ description: '`company_wide` or `only_me`.' }),
  is_active: Type.Boolean({ description: 'Whether it can be started.' }),
  trigger_count: Type.Integer({ description: 'Its triggers.' }),
  next_run_at: Nullable(DateTime({ description: 'When the schedule runs it next.' })),
  last_run: Nullable(RunSummaryOut),
  updated_at: DateTime({ description: 'Its last change.' }),
})
export type WorkflowRowOut = Static<typeof WorkflowRowOut>
export const WorkflowRowPage = PageOf('WorkflowRowPage', WorkflowRowOut)

const AppTriggerOut = Closed('AppTriggerOut', 'A trigger.', { ...TriggerOut.properties, version: Version })
export const WorkflowDetailOut = Closed('WorkflowDetailOut', 'A workflow, as the editor shows it.', {
  id: Uuid({ description: 'The workflow.' }),
  name: Type.String({ description: 'Its name.' }),
  description: Type.String({ description: "The agent's task." }),
  scope: Type.String({ description: '`company_wide` or `only_me`.' }),
  is_active: Type.Boolean({ description: 'Whether it can be started.' }),
  auto_run: AutoRunStateOut,
  users: Type.Array(
    Closed('WorkflowUserOut', 'A person with access.', {
      id: Uuid({ description: 'The user.' }),
      email: Type.String({ description: 'Email address.' }),
      name: Type.String({ description: 'Name; may be empty.' }),
    }),
    { description: 'The people that the workflow lists; for `company_wide` they matter only after a change of scope.' },
  ),
  users_version: Version,
  triggers: Type.Array(AppTriggerOut, { description: 'Oldest first.' }),
  files: Type.Array(
    Closed('WorkflowFileOut', 'A file without its content.', {
      id: Uuid({ description: 'The file.' }),
      name: Type.String({ description: 'Its name.' }),
      path: Type.Array(Type.String({ description: 'A folder.' }), { description: 'Folders from the top down.' }),
      size: Type.Integer({ description: 'Bytes in UTF-8.' }),
      version: Version,
    }),
    { description: 'By folder, then name.' },
  ),
  created_at: DateTime({ description: 'When it was made.' }),
  updated_at: DateTime({ description: 'Its last change.' }),
  version: Version,
})
export type WorkflowDetailOut = Static<typeof WorkflowDetailOut>

export const WorkflowWarningOut = Closed('WorkflowWarningOut', 'Why runs may not do what the author wants.', {
  code: Type.String({
    description:
      '`no_source_named`, `unknown_source_named`, `rules_needed`, or `rules_invalid`: the workflow has a `rules.yaml` with an error. More may be added.',
  }),
  message: Type.String({ description: 'For people, without a period at the end.' }),
  excerpt: Type.String({ description: 'What it is about: a name, or a sentence of the description; may be empty.' }),
})
export const WorkflowReadOut = Closed(
  'WorkflowReadOut',
  'A workflow, and what the built-in agent cannot follow in it.',
  {
    ...WorkflowDetailOut.properties,
    warnings: Type.Array(WorkflowWarningOut, { description: 'None if the built-in agent can follow the workflow.' }),
  },
)
export type WorkflowReadOut = Static<typeof WorkflowReadOut>

const WorkflowValues = {
  name: Name(WORKFLOW_NAME_MAX_LENGTH, 'Its name.'),
  description: Text(WORKFLOW_TEXT_MAX_LENGTH, "The agent's task; names the webhook sources to send to."),
  scope: StringEnum(['company_wide', 'only_me'], { description: 'Who has access: everyone, or the listed people.' }),
}
export const CreateWorkflowIn = Closed('CreateWorkflowIn', 'A new workflow. It begins inactive, without triggers.', {
  id: Uuid({ description: 'The id of the new workflow, chosen by the caller.' }),
  ...WorkflowValues,
})
export const SaveWorkflowIn = Closed('SaveWorkflowIn', 'New values of a workflow.', {
  ...WorkflowValues,
  version: EditedVersion,
})
export type SaveWorkflowIn = Static<typeof SaveWorkflowIn>
export const DuplicateWorkflowIn = Closed('DuplicateWorkflowIn', 'A copy with triggers, files and people, inactive.', {
  id: Uuid({ description: 'The id of the copy, chosen by the caller.' }),
  name: Name(WORKFLOW_NAME_MAX_LENGTH, 'Its name.'),
})
export const SetActiveIn = Closed('SetActiveIn', 'Switches a workflow on or off.', {
  is_active: Type.Boolean({ description: 'Whether it can be started.' }),
})
export const SaveAutoRunIn = Closed(
  'SaveAutoRunIn',
  'The schedule. It recurs at the minute at which it was switched on.',
  {
    enabled: Type.Boolean({ description: 'Whether the schedule is on.' }),
    frequency: StringEnum(AUTO_RUN_FREQUENCIES, { description: 'How often.' }),
    version: EditedVersion,
  },
)
export type SaveAutoRunIn = Static<typeof SaveAutoRunIn>
export const SaveWorkflowUsersIn = Closed('SaveWorkflowUsersIn', 'The people with access.', {
  user_ids: Type.Array(Uuid({ description: 'A user of the organization.' }), {
    maxItems: 5_000,
    description: 'All of them.',
  }),
  version: EditedVersion,
})
const SlugAndName = (title: string, description: string) =>
  Closed(title, description, {
    slug: Text(SLUG_MAX_LENGTH, 'For machines.', 1),
    name: Name(NAME_MAX_LENGTH, 'For people.'),
  })
export const SaveTriggerIn = Closed('SaveTriggerIn', 'A trigger.', {
  name: Name(WORKFLOW_NAME_MAX_LENGTH, 'May be empty.', 0),
  is_active: Type.Boolean({ description: 'False: paused.' }),
  trigger_source: SlugAndName('TriggerSourceIn', 'What fires it; `api` for the public API.'),
  events: Type.Array(SlugAndName('TriggerEventIn', 'An event that fires it.'), {
    maxItems: 100,
    description: 'The events.',
  }),
  filters: Nullable(JsonObject('Extra conditions, as configured.')),
  input_message: Text(WORKFLOW_TEXT_MAX_LENGTH, 'Precedes the text that the workflow is started with.'),
  subagent_sources: Type.Array(
    Closed('SubagentSourceIn', 'A source for subagents.', {
      id: Nullable(Uuid({ description: 'Null for `platform_internal`.' })),
      name: Name(NAME_MAX_LENGTH, 'Its name.'),
      type: Text(SLUG_MAX_LENGTH, 'Its type.', 1),
    }),
    { maxItems: 100, description: 'The sources.' },
  ),
  version: NewOrEditedVersion,
})
export type SaveTriggerIn = Static<typeof SaveTriggerIn>
export const AppFileOut = Closed('AppFileOut', 'A file with its content.', {
  id: Uuid({ description: 'The file.' }),
  name: Type.String({ description: 'Its name.' }),
  path: Type.Array(Type.String({ description: 'A folder.' }), { description: 'Folders from the top down.' }),
  content: Type.String({ description: 'The text.' }),
  version: Version,
})
export type AppFileOut = Static<typeof AppFileOut>
export const SaveFileIn = Closed('SaveFileIn', 'A file.', {
  name: Name(FILE_NAME_MAX_LENGTH, 'Its name.'),
  path: Type.Array(Name(FILE_NAME_MAX_LENGTH, 'A folder.'), {
    maxItems: FILE_PATH_MAX_DEPTH,
    description: 'Folders from the top down.',
  }),
  content: Text(FILE_CONTENT_MAX_BYTES, 'The text; at most 1 MiB in UTF-8.'),
  version: NewOrEditedVersion,
})
export type SaveFileIn = Static<typeof SaveFileIn>
export const VersionQuery = Type.Object(
  { version: Type.String({ maxLength: 100, description: VERSION_DESCRIPTION }) },
  { title: 'VersionQuery', description: 'Query parameters of a deletion.' },
)

export const READINESS_CODES = ['workflow_inactive', 'no_active_api_trigger', 'no_users_with_access'] as const
export const ReadinessOut = Closed('ReadinessOut', 'Whether a workflow can start, by the rules of the public API.', {
  can_start: Type.Boolean({ description: 'Whether a start would be accepted.' }),
  checks: Type.Array(
    Closed('ReadinessCheckOut', 'One rule.', {
      code: StringEnum(READINESS_CODES, { description: 'The error that a start gets when the rule is not met.' }),
      is_met: Type.Boolean({ description: 'Whether it is met.' }),
    }),
    { description: 'In the order in which a start checks them.' },
  ),
  sources: Type.Array(
    Closed('NamedSourceOut', 'A webhook source that the workflow names.', {
      id: Uuid({ description: 'The webhook source.' }),
      name: Type.String({ description: 'Its name.' }),
      is_verified: Type.Boolean({ description: 'Whether its endpoint has confirmed.' }),
    }),
    {
      description:
        'The webhook sources that the `rules.yaml` or else the description names, in the order of appearance.',
    },
  ),
  unknown_names: Type.Array(Type.String({ description: 'A name in quotation marks that no webhook source has.' }), {
    description: 'Names that the description seems to use for webhook sources that do not exist; at most 20.',
  }),
  warnings: Type.Array(WorkflowWarningOut, {
    description: 'What the built-in agent cannot follow; it does not keep a start from being accepted.',
  }),
})
export type ReadinessOut = Static<typeof ReadinessOut>

export const AppStartIn = Closed('AppStartIn', 'Starts a workflow.', {
  id: Uuid({ description: 'The id of the run, chosen by the caller, so that a repeated request starts nothing new.' }),
  context: Text(CONTEXT_MAX_LENGTH, 'The text; white space at both ends is removed.', 1),
  session_id: Nullable(Uuid({ description: 'An open session; null opens a new one.' })),
})
export const AppStartOut = Closed('AppStartOut', 'The start was accepted.', {
  run_id: Uuid({ description: 'The run.' }),
  session_id: Uuid({ description: 'Its session.' }),
})
