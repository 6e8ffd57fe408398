import type { ErrorObject } from 'ajv'
import { type Static, type TSchema, Type } from 'typebox'
import type { FieldError } from './errors.ts'
import { findSimilar } from './find-similar.ts'
import { WebhookSourceIn } from './internal/resources.ts'
import {
  EMAIL_MAX_LENGTH,
  FILE_NAME_MAX_LENGTH,
  FILE_PATH_MAX_DEPTH,
  NAME_MAX_LENGTH,
  SLUG_MAX_LENGTH,
  WORKFLOW_NAME_MAX_LENGTH,
  WORKFLOW_TEXT_MAX_LENGTH,
} from './limits.ts'
import { SCOPES } from './public/operations.ts'
import { AUTO_RUN_FREQUENCIES } from './public/resources.ts'
import { compile } from './schema/ajv.ts'
import { toFieldErrors } from './schema/field-errors.ts'
import { CLOSED, DateTime, JsonObject, Nullable, StringEnum, Uuid } from './schema/types.ts'

interface TextOptions {
  description: string
  minLength?: number
  maxLength?: number
  default?: string
}

const Text = (options: TextOptions) => Type.String({ format: 'storable', ...options })
const Name = (options: TextOptions) => Type.String({ format: 'name', ...options })
const Flag = (description: string, options: { default?: boolean } = {}) =>
  Type.Optional(Type.Boolean({ description, ...options }))
const Id = (description: string) => Type.Optional(Uuid({ description }))
const Time = (description: string) => Type.Optional(DateTime({ description }))
const List = <Item extends TSchema>(item: Item, description: string) =>
  Type.Optional(Type.Array(item, { description, default: [] }))

/** The organization that the manifest describes (contract README, "Manifest"). */
export const ManifestOrganization = Type.Object(
  {
    id: Id('Derived from the name when absent.'),
    name: Name({ minLength: 1, maxLength: NAME_MAX_LENGTH, description: 'Organization name.' }),
    suspended: Flag('Whether every request of its keys is refused.', { default: false }),
  },
  { ...CLOSED, title: 'ManifestOrganization', description: 'The organization.' },
)

/** A user of the organization, identified by the email address. */
export const ManifestUser = Type.Object(
  {
    email: Text({
      minLength: 1,
      maxLength: EMAIL_MAX_LENGTH,
      description: 'Email address, unique in the organization.',
    }),
    first_name: Type.Optional(Name({ maxLength: NAME_MAX_LENGTH, default: '', description: 'First name.' })),
    last_name: Type.Optional(Name({ maxLength: NAME_MAX_LENGTH, default: '', description: 'Last name.' })),
  },
  { ...CLOSED, title: 'ManifestUser', description: 'A user.' },
)

/** An API key, identified by its name. */
export const ManifestApiKey = Type.Object(
  {
    name: Name({ minLength: 1, maxLength: NAME_MAX_LENGTH, description: 'Name, unique in the organization.' }),
    key: Type.Optional(Text({ description: 'The key itself. When absent, one is created and printed once.' })),
    scopes: Type.Optional(
      Type.Array(StringEnum(SCOPES, { description: 'One permission of the key.' }), {
        minItems: 1,
        description: 'Permissions of the key. Default for a new key: all; a known one keeps its own.',
      }),
    ),
    revoked: Flag('Whether the key is refused. When absent, a revoked key stays revoked.'),
  },
  { ...CLOSED, title: 'ManifestApiKey', description: 'An API key.' },
)

/** A webhook source, saved through the dispatcher. */
export const ManifestWebhookSource = Type.Object(
  {
    id: Id('Derived from the name when absent.'),
    ...WebhookSourceIn.properties,
    verify: Flag('False records the source without the verification request.', { default: true }),
  },
  { ...CLOSED, title: 'ManifestWebhookSource', description: 'A webhook source.' },
)

/** The schedule of a workflow. */
export const ManifestAutoRun = Type.Object(
  {
    enabled: Nullable(Type.Boolean({ description: 'Whether the workflow reruns on a schedule.' })),
    frequency: Type.Optional(
      Nullable(StringEnum(AUTO_RUN_FREQUENCIES, { description: 'How often; required when enabled.' })),
    ),
  },
  { ...CLOSED, title: 'ManifestAutoRun', description: 'The schedule; absent or null means never configured.' },
)

/** The origin of a trigger's events. */
export const ManifestTriggerSource = Type.Object(
  {
    slug: Text({ minLength: 1, maxLength: SLUG_MAX_LENGTH, description: 'Machine-readable name, such as `api`.' }),
    name: Name({ minLength: 1, maxLength: NAME_MAX_LENGTH, description: 'Human-readable name.' }),
  },
  { ...CLOSED, title: 'ManifestTriggerSource', description: "The origin of a trigger's events." },
)

/** An event that fires a trigger. */
export const ManifestTriggerEvent = Type.Object(
  {
    slug: Text({ minLength: 1, maxLength: SLUG_MAX_LENGTH, description: 'Machine-readable event name.' }),
    name: Name({ minLength: 1, maxLength: NAME_MAX_LENGTH, description: 'Human-readable event name.' }),
  },
  { ...CLOSED, title: 'ManifestTriggerEvent', description: 'An event that fires a trigger.' },
)

/** A source that subagents of a triggered session may use. */
export const ManifestSubagentSource = Type.Object(
  {
    id: Type.Optional(
      Nullable(
        Uuid({
          description:
            'Absent: the id of the webhook source of this name if the type is `api`, otherwise derived from type and name. Not allowed if the type is `platform_internal`.',
        }),
      ),
    ),
    name: Name({ minLength: 1, maxLength: NAME_MAX_LENGTH, description: 'Source name.' }),
    type: Text({ minLength: 1, maxLength: SLUG_MAX_LENGTH, description: '`api`, `street`, `platform_internal`, …' }),
  },
  { ...CLOSED, title: 'ManifestSubagentSource', description: 'A source that subagents may use.' },
)

/** A trigger of a workflow. */
export const ManifestTrigger = Type.Object(
  {
    id: Id('Derived from the workflow and the name when absent.'),
    name: Type.Optional(Name({ maxLength: WORKFLOW_NAME_MAX_LENGTH, default: '', description: 'Trigger name.' })),
    is_active: Flag('False pauses the trigger.', { default: true }),
    trigger_source: ManifestTriggerSource,
    events: List(ManifestTriggerEvent, 'Events that fire the trigger.'),
    filters: Type.Optional(Nullable(JsonObject('Extra conditions, kept exactly as written.'))),
    input_message: Type.Optional(
      Text({ maxLength: WORKFLOW_TEXT_MAX_LENGTH, default: '', description: 'Text added to the session message.' }),
    ),
    subagent_sources: List(ManifestSubagentSource, 'Sources that subagents may use.'),
    created_at: Time('Creation time. Default: when it is first applied.'),
  },
  { ...CLOSED, title: 'ManifestTrigger', description: 'A trigger of a workflow.' },
)

/** A file of a workflow. */
export const ManifestFile = Type.Object(
  {
    id: Id('Derived from the workflow, the path and the name when absent.'),
    name: Name({
      minLength: 1,
      maxLength: FILE_NAME_MAX_LENGTH,
      description: 'File name. `rules.yaml` in the root of the workflow holds the rules of the built-in agent.',
    }),
    path: Type.Optional(
      Type.Array(Name({ minLength: 1, maxLength: FILE_NAME_MAX_LENGTH, description: 'A folder name.' }), {
        maxItems: FILE_PATH_MAX_DEPTH,
        default: [],
        description: 'Containing folders from the top down; empty for the root of the workflow.',
      }),
    ),
    content: Type.Optional(Text({ default: '', description: 'Text of at most 1 MiB in UTF-8.' })),
  },
  { ...CLOSED, title: 'ManifestFile', description: 'A file of a workflow.' },
)

/** A workflow with everything that belongs to it. */
export const ManifestWorkflow = Type.Object(
  {
    id: Id('Derived from the name when absent.'),
    name: Name({ minLength: 1, maxLength: WORKFLOW_NAME_MAX_LENGTH, description: 'Workflow name.' }),
    description: Type.Optional(
      Text({ maxLength: WORKFLOW_TEXT_MAX_LENGTH, default: '', description: 'What the workflow does.' }),
    ),
    scope: Type.Optional(
      Text({
        minLength: 1,
        maxLength: SLUG_MAX_LENGTH,
        description: '`company_wide`: everyone in the organization has access; otherwise the listed users.',
        default: 'company_wide',
      }),
    ),
    is_active: Flag('An inactive workflow cannot be started.', { default: true }),
    auto_run: Type.Optional(Nullable(ManifestAutoRun)),
    users: List(
      Text({ minLength: 1, maxLength: EMAIL_MAX_LENGTH, description: 'Email address of a user.' }),
      'Users with access.',
    ),
    triggers: List(ManifestTrigger, 'Triggers of the workflow.'),
    files: List(ManifestFile, 'Files of the workflow.'),
    created_at: Time('Creation time. Default: when it is first applied.'),
    updated_at: Time('Time of the last change. Default: when something about it last changed.'),
  },
  { ...CLOSED, title: 'ManifestWorkflow', description: 'A workflow.' },
)

/** A session that starts can name. */
export const ManifestSession = Type.Object(
  {
    id: Id('Derived from its position in the list when absent.'),
    open: Flag(
      'Whether it accepts starts. Default true for a new session; when absent, an existing one stays as it is.',
    ),
  },
  { ...CLOSED, title: 'ManifestSession', description: 'A session.' },
)

/** The desired state of an organization, as `wf apply` reads it (contract README, "Manifest"). */
export const Manifest = Type.Object(
  {
    organization: ManifestOrganization,
    users: List(ManifestUser, 'Users of the organization.'),
    api_keys: List(ManifestApiKey, 'API keys of the organization.'),
    webhook_sources: List(ManifestWebhookSource, 'Webhook sources of the organization.'),
    workflows: List(ManifestWorkflow, 'Workflows of the organization.'),
    sessions: List(ManifestSession, 'Sessions of the organization.'),
  },
  { ...CLOSED, title: 'Manifest', description: 'The desired state of an organization.' },
)
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

/** The known values of fields that may have others too. */
const KNOWN_VALUES = {
  scope: ['company_wide', 'only_me'],
  slug: ['api'],
  subagent_source: ['api', 'street', 'platform_internal'],
} as const

/** Shorter values differ too little from each other to count as misspelled. */
const MISSPELLED_MIN_LENGTH = 8

/**
 * The known value that is meant by one that may be another: it differs in case, or in what is between the words, or a long one in one or
 * two letters. Undefined if the value is a known one, or is like none.
 */
export function findKnownValue(field: keyof typeof KNOWN_VALUES, value: string): string | undefined {
  const known: readonly string[] = KNOWN_VALUES[field]
  if (known.includes(value)) return undefined
  const same = known.find((each) => toLetters(each) === toLetters(value))
  return same ?? (value.length < MISSPELLED_MIN_LENGTH ? undefined : findSimilar(value, known))
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
