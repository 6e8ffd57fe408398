import { type Static, type TSchema, Type } from 'typebox'
import type { FieldError } from './errors.ts'
import { compile } from './ajv.ts'
import { toFieldErrors } from './field-errors.ts'
import { WebhookSourceIn } from './internal-api.ts'
import { SCOPES } from './operations.ts'
import { AUTO_RUN_FREQUENCIES } from './resources.ts'
import { closed, DateTime, Nullable, StringEnum, Uuid } from './schema.ts'

/** A file's content at most, in bytes of UTF-8. */
export const FILE_CONTENT_MAX_BYTES = 1_048_576

interface TextOptions {
  description: string
  minLength?: number
  maxLength?: number
}

const Text = (options: TextOptions) => Type.String({ format: 'storable', ...options })
const Flag = (description: string) => Type.Optional(Type.Boolean({ description }))
const Id = (description: string) => Type.Optional(Uuid({ description }))
const Time = (description: string) => Type.Optional(DateTime({ description }))
const List = <Item extends TSchema>(item: Item, description: string) => Type.Optional(Type.Array(item, { description }))

/** The organization that a manifest is about. */
export const ManifestOrganization = Type.Object(
  {
    id: Id('Derived from the name when absent.'),
    name: Text({ minLength: 1, maxLength: 200, description: 'Organization name.' }),
    suspended: Flag('Whether every request of its keys is refused. Default false.'),
  },
  { ...closed, title: 'ManifestOrganization', description: 'The organization.' },
)

/** A user of the organization; the email address is what tells users apart. */
export const ManifestUser = Type.Object(
  {
    email: Text({ minLength: 1, maxLength: 320, description: 'Email address, unique in the organization.' }),
    first_name: Type.Optional(Text({ maxLength: 200, description: 'First name. Default empty.' })),
    last_name: Type.Optional(Text({ maxLength: 200, description: 'Last name. Default empty.' })),
  },
  { ...closed, title: 'ManifestUser', description: 'A user.' },
)

/** An API key; the name is what tells keys apart. */
export const ManifestApiKey = Type.Object(
  {
    name: Text({ minLength: 1, maxLength: 200, description: 'Name, unique in the organization.' }),
    key: Type.Optional(Text({ description: 'The key itself. When absent, one is made and printed once.' })),
    scopes: Type.Optional(
      Type.Array(StringEnum(SCOPES, { description: 'One thing that the key may do.' }), {
        minItems: 1,
        description: 'What the key may do. Default everything.',
      }),
    ),
    revoked: Flag('Whether the key is refused. When absent, a revoked key stays revoked.'),
  },
  { ...closed, title: 'ManifestApiKey', description: 'An API key.' },
)

/** A webhook source, saved through the dispatcher. */
export const ManifestWebhookSource = Type.Object(
  {
    id: Id('Derived from the name when absent.'),
    ...WebhookSourceIn.properties,
    verify: Flag('False records the source without the verification request. Default true.'),
  },
  { ...closed, title: 'ManifestWebhookSource', description: 'A webhook source.' },
)

/** The schedule of a workflow. */
export const ManifestAutoRun = Type.Object(
  {
    enabled: Nullable(Type.Boolean({ description: 'Whether the workflow reruns on a schedule.' })),
    frequency: Type.Optional(
      Nullable(StringEnum(AUTO_RUN_FREQUENCIES, { description: 'How often; required when enabled.' })),
    ),
  },
  { ...closed, title: 'ManifestAutoRun', description: 'The schedule; absent or null means never configured.' },
)

const SLUG_MAX_LENGTH = 100
const NAME_MAX_LENGTH = 200

/** Where the events of a trigger come from. */
export const ManifestTriggerSource = Type.Object(
  {
    slug: Text({ minLength: 1, maxLength: SLUG_MAX_LENGTH, description: 'Machine-readable name, such as `api`.' }),
    name: Text({ minLength: 1, maxLength: NAME_MAX_LENGTH, description: 'Human-readable name.' }),
  },
  { ...closed, title: 'ManifestTriggerSource', description: 'Where the events of a trigger come from.' },
)

/** An event that fires a trigger. */
export const ManifestTriggerEvent = Type.Object(
  {
    slug: Text({ minLength: 1, maxLength: SLUG_MAX_LENGTH, description: 'Machine-readable event name.' }),
    name: Text({ minLength: 1, maxLength: NAME_MAX_LENGTH, description: 'Human-readable event name.' }),
  },
  { ...closed, title: 'ManifestTriggerEvent', description: 'An event that fires a trigger.' },
)

/** A source that subagents of a triggered session may use. */
export const ManifestSubagentSource = Type.Object(
  {
    id: Type.Optional(
      Nullable(
        Uuid({
          description:
            'Absent: that of the webhook source of this name where the type is `api`, else derived from type and name. None where the type is `platform_internal`.',
        }),
      ),
    ),
    name: Text({ minLength: 1, maxLength: NAME_MAX_LENGTH, description: 'Source name.' }),
    type: Text({ minLength: 1, maxLength: SLUG_MAX_LENGTH, description: '`api`, `street`, `platform_internal`, …' }),
  },
  { ...closed, title: 'ManifestSubagentSource', description: 'A source that subagents may use.' },
)

/** What starts a workflow. */
export const ManifestTrigger = Type.Object(
  {
    id: Id('Derived from the workflow and the name when absent.'),
    name: Type.Optional(Text({ maxLength: 500, description: 'Trigger name. Default empty.' })),
    is_active: Flag('False pauses the trigger. Default true.'),
    trigger_source: ManifestTriggerSource,
    events: List(ManifestTriggerEvent, 'Events that fire the trigger.'),
    filters: Type.Optional(
      Nullable(
        Type.Unsafe<Record<string, unknown>>({
          type: 'object',
          additionalProperties: true,
          description: 'Extra conditions, kept exactly as written.',
        }),
      ),
    ),
    input_message: Type.Optional(
      Text({ maxLength: 50_000, description: 'Text added to the session message. Default empty.' }),
    ),
    subagent_sources: List(ManifestSubagentSource, 'Sources that subagents may use.'),
    created_at: Time('Creation time. Default: when it is first applied.'),
  },
  { ...closed, title: 'ManifestTrigger', description: 'What starts a workflow.' },
)

/** A file of a workflow. */
export const ManifestFile = Type.Object(
  {
    id: Id('Derived from the workflow, the path and the name when absent.'),
    name: Text({ minLength: 1, maxLength: 255, description: 'File name.' }),
    path: Type.Optional(
      Type.Array(Text({ minLength: 1, maxLength: 255, description: 'A folder name.' }), {
        maxItems: 50,
        description: 'Containing folders from the top down. Default: the workflow root.',
      }),
    ),
    content: Type.Optional(Text({ description: 'Text of at most 1 MiB in UTF-8. Default empty.' })),
  },
  { ...closed, title: 'ManifestFile', description: 'A file of a workflow.' },
)

/** A workflow with everything that belongs to it. */
export const ManifestWorkflow = Type.Object(
  {
    id: Id('Derived from the name when absent.'),
    name: Text({ minLength: 1, maxLength: 500, description: 'Workflow name.' }),
    description: Type.Optional(Text({ maxLength: 50_000, description: 'What the workflow does. Default empty.' })),
    scope: Type.Optional(
      Text({
        minLength: 1,
        maxLength: 100,
        description:
          '`company_wide`: everyone in the organization has access; otherwise those listed. Default `company_wide`.',
      }),
    ),
    is_active: Flag('An inactive workflow cannot be started. Default true.'),
    auto_run: Type.Optional(Nullable(ManifestAutoRun)),
    users: List(Text({ minLength: 1, maxLength: 320, description: 'Email address of a user.' }), 'Users with access.'),
    triggers: List(ManifestTrigger, 'What starts the workflow.'),
    files: List(ManifestFile, 'Files of the workflow.'),
    created_at: Time('Creation time. Default: when it is first applied.'),
    updated_at: Time('Time of the last change. Default: when something about it last changed.'),
  },
  { ...closed, title: 'ManifestWorkflow', description: 'A workflow.' },
)

/** A session that starts can be sent to. */
export const ManifestSession = Type.Object(
  {
    id: Id('Derived from the place in the list when absent.'),
    open: Flag(
      'Whether starts may run in it. Default true for a new session; when absent, a known one stays as it is.',
    ),
  },
  { ...closed, title: 'ManifestSession', description: 'A session.' },
)

/** What `wf apply` takes (design 8): an organization as it shall be. */
export const Manifest = Type.Object(
  {
    organization: ManifestOrganization,
    users: List(ManifestUser, 'Users of the organization.'),
    api_keys: List(ManifestApiKey, 'API keys of the organization.'),
    webhook_sources: List(ManifestWebhookSource, 'Webhook sources of the organization.'),
    workflows: List(ManifestWorkflow, 'Workflows of the organization.'),
    sessions: List(ManifestSession, 'Sessions of the organization.'),
  },
  { ...closed, title: 'Manifest', description: 'An organization as it shall be.' },
)
export type Manifest = Static<typeof Manifest>

/** One fault of a manifest: where (`workflows[0].triggers[1].name`; empty = the whole) and what. */
export interface ManifestFieldError {
  readonly path: string
  readonly message: string
}

/** Compiled when the first manifest comes: no service needs it, and it takes as long as all the rest of this package. */
const validator = once(() => compile(Manifest))

/** Every place where the value is not of the manifest's shape, in the manifest's order; none means that it is. */
export function manifestShapeErrors(value: unknown): ManifestFieldError[] {
  const check = validator()
  if (check(value)) return []
  return toFieldErrors(check.errors ?? [], Object.keys(Manifest.properties)).map(toManifestFieldError)
}

/** A fault as the contract's other validators name it, with list places in brackets: `users.0.email` → `users[0].email`. */
export function toManifestFieldError({ field, code, message }: FieldError): ManifestFieldError {
  return {
    path: field === 'body' ? '' : field.replaceAll(/\.(\d+)(?=\.|$)/g, '[$1]'),
    message: code === 'missing' ? 'is missing' : message,
  }
}

function once<Result>(make: () => Result): () => Result {
  let made: Result | undefined
  return () => (made ??= make())
}
