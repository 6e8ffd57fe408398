import { SCOPES } from './enumerations.ts'
import type { ErrorObject } from 'ajv'
import type { TSchema } from 'typebox'
import type { Static } from './schema/static.ts'
import type { FieldError } from './errors.ts'
import { findSimilar } from './find-similar.ts'
import { LookupIn } from './internal/lookups.ts'
import { WebhookSourceIn } from './internal/resources.ts'
import {
  EMAIL_MAX_LENGTH,
  FILE_NAME_MAX_LENGTH,
  FILE_PATH_MAX_DEPTH,
  INSTRUCTIONS_MAX_LENGTH,
  NAME_MAX_LENGTH,
  SLUG_MAX_LENGTH,
  WORKFLOW_NAME_MAX_LENGTH,
  WORKFLOW_TEXT_MAX_LENGTH,
} from './limits.ts'
import { AUTO_RUN_FREQUENCIES } from './public/resources.ts'
import { compile } from './schema/ajv.ts'
import { toFieldErrors } from './schema/field-errors.ts'
import { ScheduleTiming } from './schedule-timing.ts'
import { Closed, JsonObject, List, Nullable, Optional } from './schema/objects.ts'
import { Bool, DateTime, Name, Str, StringEnum, Text, Uuid } from './schema/values.ts'
import { Type } from './schema/type.ts'

const Flag = (description: string, options: { default?: boolean } = {}) => Optional(Bool(description, options))
const Id = (description: string) => Optional(Uuid(description))
const Time = (description: string) => Optional(DateTime(description))
const OptionalList = <Item extends TSchema>(item: Item, description: string) =>
  Optional(List(item, description, { default: [] }))

const Budget = (description: string) =>
  Optional(Nullable(Type.Number({ minimum: 0, maximum: 1_000_000_000, description })))

/** The organization that the manifest describes (contract README, "Manifest"). */
export const ManifestOrganization = Closed('ManifestOrganization', 'The organization.', {
  id: Id('Derived from the name when absent.'),
  name: Name(NAME_MAX_LENGTH, 'Organization name.'),
  suspended: Flag('Whether every request of its keys is refused.', { default: false }),
  instructions: Optional(
    Text(
      INSTRUCTIONS_MAX_LENGTH,
      'What agents with a model follow in all workflows; empty: nothing. When absent, the stored ones stay.',
    ),
  ),
  month_budget: Budget(
    "What models may cost in a month (UTC), in the currency of the models' prices; null: no limit. When absent, the stored one stays.",
  ),
  offered_models: Optional(
    List(
      Text(200, 'The name of a model, or `builtin`.', 1),
      'The models that members may choose; empty: all. When absent, the stored ones stay.',
      { maxItems: 100, uniqueItems: true },
    ),
  ),
})

export const ManifestUser = Closed('ManifestUser', 'A user of the organization, identified by the email address.', {
  email: Text(EMAIL_MAX_LENGTH, 'Email address, unique in the organization.', 1),
  first_name: Optional(Name(NAME_MAX_LENGTH, 'First name.', 0, { default: '' })),
  last_name: Optional(Name(NAME_MAX_LENGTH, 'Last name.', 0, { default: '' })),
})

export const ManifestApiKey = Closed('ManifestApiKey', 'An API key, identified by its name.', {
  name: Name(NAME_MAX_LENGTH, 'Name, unique in the organization.'),
  key: Optional(Str('The key itself. When absent, one is created and printed once.', { format: 'storable' })),
  scopes: Optional(
    List(
      StringEnum(SCOPES, 'One permission of the key.'),
      'Permissions of the key. Default for a new key: all; a known one keeps its own.',
      { minItems: 1 },
    ),
  ),
  revoked: Flag('Whether the key is refused. When absent, a revoked key stays revoked.'),
})

export const ManifestWebhookSource = Closed(
  'ManifestWebhookSource',
  'A webhook source, saved through the dispatcher.',
  {
    id: Id('Derived from the name when absent.'),
    ...WebhookSourceIn.properties,
    verify: Flag('False records the source without the verification request.', { default: true }),
  },
)

export const ManifestLookup = Closed('ManifestLookup', 'A look-up, saved through the dispatcher.', {
  id: Id('Derived from the name when absent.'),
  ...LookupIn.properties,
})

export const ManifestAutoRun = Closed('ManifestAutoRun', 'The schedule; absent or null means never configured.', {
  enabled: Nullable(Bool('Whether the workflow reruns on a schedule.')),
  frequency: Optional(Nullable(StringEnum(AUTO_RUN_FREQUENCIES, 'How often; required when enabled.'))),
  timing: Optional(Nullable(ScheduleTiming)),
})

export const ManifestTriggerSource = Closed('ManifestTriggerSource', "The origin of a trigger's events.", {
  slug: Text(SLUG_MAX_LENGTH, 'Machine-readable name, such as `api`.', 1),
  name: Name(NAME_MAX_LENGTH, 'Human-readable name.'),
})

export const ManifestTriggerEvent = Closed('ManifestTriggerEvent', 'An event that fires a trigger.', {
  slug: Text(SLUG_MAX_LENGTH, 'Machine-readable event name.', 1),
  name: Name(NAME_MAX_LENGTH, 'Human-readable event name.'),
})

export const ManifestSubagentSource = Closed('ManifestSubagentSource', 'A source that subagents may use.', {
  id: Optional(
    Nullable(
      Uuid(
        'Absent: the id of the webhook source of this name if the type is `api`, otherwise derived from type and name. Not allowed if the type is `platform_internal`.',
      ),
    ),
  ),
  name: Name(NAME_MAX_LENGTH, 'Source name.'),
  type: Text(
    SLUG_MAX_LENGTH,
    '`api` (a webhook source), `street` (not one of this service: stored and returned, nothing is called) or `platform_internal` (built in).',
    1,
  ),
})

export const ManifestTrigger = Closed('ManifestTrigger', 'A trigger of a workflow.', {
  id: Id('Derived from the workflow and the name when absent.'),
  name: Optional(Name(WORKFLOW_NAME_MAX_LENGTH, 'Trigger name.', 0, { default: '' })),
  is_active: Flag('False pauses the trigger.', { default: true }),
  trigger_source: ManifestTriggerSource,
  events: OptionalList(ManifestTriggerEvent, 'Events that fire the trigger.'),
  filters: Optional(
    Nullable(JsonObject('Extra conditions, kept exactly as written: this service does not evaluate them.')),
  ),
  input_message: Optional(Text(WORKFLOW_TEXT_MAX_LENGTH, 'Text added to the session message.', 0, { default: '' })),
  subagent_sources: OptionalList(ManifestSubagentSource, 'Sources that subagents may use.'),
  created_at: Time('Creation time. Default: when it is first applied.'),
})

export const ManifestFile = Closed('ManifestFile', 'A file of a workflow.', {
  id: Id('Derived from the workflow, the path and the name when absent.'),
  name: Name(
    FILE_NAME_MAX_LENGTH,
    'File name. `rules.yaml` in the root of the workflow holds the rules of the built-in agent.',
  ),
  path: Optional(
    List(
      Name(FILE_NAME_MAX_LENGTH, 'A folder name.'),
      'Containing folders from the top down; empty for the root of the workflow.',
      { maxItems: FILE_PATH_MAX_DEPTH, default: [] },
    ),
  ),
  content: Optional(
    Str('Text of at most 1 MiB in UTF-8; of a PDF or an image (by its name), the file in base64, at most 3 MiB.', {
      format: 'storable',
      default: '',
    }),
  ),
})

export const ManifestWorkflow = Closed('ManifestWorkflow', 'A workflow with everything that belongs to it.', {
  id: Id('Derived from the name when absent.'),
  name: Name(WORKFLOW_NAME_MAX_LENGTH, 'Workflow name.'),
  description: Optional(Text(WORKFLOW_TEXT_MAX_LENGTH, 'What the workflow does.', 0, { default: '' })),
  scope: Optional(
    Text(SLUG_MAX_LENGTH, '`company_wide`: everyone in the organization has access; otherwise the listed users.', 1, {
      default: 'company_wide',
    }),
  ),
  is_active: Flag('An inactive workflow cannot be started.', { default: true }),
  auto_run: Optional(Nullable(ManifestAutoRun)),
  model: Optional(
    Nullable(Text(200, 'The name of a model, or `builtin`. Absent or null: the default of the service.', 1)),
  ),
  run_budget: Budget("What models may cost in a run, in the currency of the models' prices."),
  day_budget: Budget('What models may cost in a day (UTC).'),
  when_spent: Optional(
    StringEnum(
      ['fail', 'wait'],
      'Whether a run that reaches the budget of a day or month fails, or waits for the next.',
      {
        default: 'fail',
      },
    ),
  ),
  users: OptionalList(Text(EMAIL_MAX_LENGTH, 'Email address of a user.', 1), 'Users with access.'),
  triggers: OptionalList(ManifestTrigger, 'Triggers of the workflow.'),
  files: OptionalList(ManifestFile, 'Files of the workflow.'),
  created_at: Time('Creation time. Default: when it is first applied.'),
  updated_at: Time('Time of the last change. Default: when something about it last changed.'),
})

export const ManifestSession = Closed('ManifestSession', 'A session that starts can name.', {
  id: Id('Derived from its position in the list when absent.'),
  open: Flag('Whether it accepts starts. Default true for a new session; when absent, an existing one stays as it is.'),
})

/** The desired state of an organization, as `wf apply` reads it (contract README, "Manifest"). */
export const Manifest = Closed('Manifest', 'The desired state of an organization.', {
  organization: ManifestOrganization,
  users: OptionalList(ManifestUser, 'Users of the organization.'),
  api_keys: OptionalList(ManifestApiKey, 'API keys of the organization.'),
  webhook_sources: OptionalList(ManifestWebhookSource, 'Webhook sources of the organization.'),
  lookups: OptionalList(ManifestLookup, 'Look-ups of the organization.'),
  workflows: OptionalList(ManifestWorkflow, 'Workflows of the organization.'),
  sessions: OptionalList(ManifestSession, 'Sessions of the organization.'),
})
export type Manifest = Static<typeof Manifest>

/** One error of a manifest. `path` is such as `workflows[0].triggers[1].name`; empty for the whole manifest. */
export interface ManifestFieldError {
  readonly path: string
  readonly message: string
}

/** Compiled on first use: no service needs it, and it takes as long as all other validators of this package. */
let validateManifest: ReturnType<typeof compile<typeof Manifest>> | undefined

/** Lists where the value does not have the shape of a manifest, in the manifest's order. Empty if it has. */
export function findManifestShapeErrors(value: unknown): ManifestFieldError[] {
  validateManifest ??= compile(Manifest)
  if (validateManifest(value)) return []
  const fieldOrder = Object.keys(Manifest.properties)
  let suggestions = 0
  const describe = (error: ErrorObject) => (suggestions++ < MAX_SUGGESTIONS ? suggest(error) : undefined)
  return toFieldErrors(validateManifest.errors ?? [], fieldOrder, describe).map(toManifestFieldError)
}

/** Errors of a manifest that are compared with what is known. */
const MAX_SUGGESTIONS = 100

/** The message for a field or value that is similar to a known one. */
function suggest({ keyword, params, parentSchema, data }: ErrorObject): string | undefined {
  if (keyword === 'additionalProperties') {
    const { properties = {} } = (parentSchema ?? {}) as { properties?: object }
    const similar = findSimilarField(String(params['additionalProperty']), Object.keys(properties))
    return similar && `is not a known field; did you mean ${similar}?`
  }
  if (keyword === 'enum' && typeof data === 'string') {
    const values = (params['allowedValues'] as unknown[]).filter((value) => typeof value === 'string')
    const similar = findSimilar(data, values)
    return similar && `must be one of ${values.join(', ')}; did you mean ${similar}?`
  }
  return undefined
}

/** A misspelled field, or a part of the name of just one: `secret` for `signing_secret`. */
function findSimilarField(typed: string, names: readonly string[]): string | undefined {
  const similar = findSimilar(typed, names)
  if (similar !== undefined) return similar
  const [only, ...others] = names.filter((name) => name.split('_').includes(typed.toLowerCase()))
  return others.length === 0 ? only : undefined
}

/** The values that this release knows of fields that may have others later. */
const KNOWN_VALUES = {
  scope: ['company_wide', 'only_me'],
  slug: ['api'],
  subagent_source: ['api', 'street', 'platform_internal'],
} as const
export type OpenField = keyof typeof KNOWN_VALUES

/** Says that a value is unknown, and which one it resembles. Undefined if it is known. */
export function describeUnknownValue(field: OpenField, value: string): string | undefined {
  const known: readonly string[] = KNOWN_VALUES[field]
  if (known.includes(value)) return undefined
  const meant = known.find((each) => toLetters(each) === toLetters(value)) ?? findSimilar(value, known)
  return `is ${JSON.stringify(value)}${meant ? `; did you mean ${meant}?` : `, which is unknown; known: ${known.join(', ')}`}`
}

function toLetters(text: string): string {
  return text.toLowerCase().replaceAll(/[^a-z0-9]/g, '')
}

/** Converts a field error, with list indexes in brackets: `users.0.email` becomes `users[0].email`. */
export function toManifestFieldError({ field, code, message }: FieldError): ManifestFieldError {
  return {
    path: field === 'body' ? '' : field.replaceAll(/\.(\d+)(?=\.|$)/g, '[$1]'),
    message: code === 'missing' ? 'is missing' : message,
  }
}
