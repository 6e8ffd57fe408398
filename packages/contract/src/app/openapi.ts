import { buildOpenApi, type DescribedError, type DescribedOperation } from '../schema/build-openapi.ts'
import { AppErrorResponse } from './errors.ts'
import { type Access, APP_OPERATIONS, type AppOperation, bodyLimitsOf, isOpen } from './operations.ts'

/**
 * Describes the application's API as an OpenAPI document, from the schemas that validate its requests (contract README,
 * "Application"). `serverUrl` is what the paths are appended to.
 */
export function describeAppApi(serverUrl = 'http://127.0.0.1:8083'): Record<string, unknown> {
  return buildOpenApi({
    title: 'Workflow Automation Service: application',
    description:
      "The API of the application's own page. It may change with any release; customers' programs use the public API.\n\nEvery method but GET needs `Sec-Fetch-Site: same-origin` or an `Origin` equal to `APP_URL`.",
    serverUrl,
    tags: Object.entries(TAGS).map(([name, { description }]) => ({ name, description })),
    credential: {
      cookie: {
        type: 'apiKey',
        in: 'cookie',
        name: '__Host-session',
        description: 'Set by the operations that sign in.',
      },
    },
    operations: Object.values<AppOperation>(APP_OPERATIONS).map(toDescribed),
    error: AppErrorResponse,
    errors: ERRORS,
  })
}

/** Each tag with its description and the first segments of its paths after `/app/`. */
const TAGS: Record<string, { description: string; segments: readonly string[] }> = {
  'Sign-in': {
    description: 'Set up, sign in, accept links, and the person who is signed in.',
    segments: ['setup', 'cookie', 'sign-in', 'sign-out', 'links', 'oidc', 'me'],
  },
  Workflows: {
    description: 'Workflows with their triggers, people, files and schedule.',
    segments: ['workflows', 'models'],
  },
  'Webhook sources': {
    description: 'Where agents can post data to, and their logs.',
    segments: ['webhook-sources'],
  },
  'Look-ups': { description: 'What agents with a model may read.', segments: ['lookups'] },
  Instructions: { description: 'What agents with a model follow.', segments: ['instructions', 'model-keys'] },
  Deliveries: {
    description: 'What was sent, sending it again, and approvals.',
    segments: ['deliveries', 'resends', 'approvals'],
  },
  Runs: { description: 'What agents did.', segments: ['runs'] },
  Sessions: { description: 'Sessions, in which runs follow one another.', segments: ['sessions'] },
  'API keys': { description: 'Keys of the public API.', segments: ['api-keys'] },
  Organization: {
    description: 'The organization, its people, its usage and its audit log.',
    segments: [
      'organization',
      'users',
      'manifest',
      'overview',
      'attention',
      'notices',
      'usage',
      'audit-events',
      'search',
      'events',
    ],
  },
}

function tagOf(path: string): string {
  const segment = path.split('/')[2] ?? ''
  const tag = Object.keys(TAGS).find((name) => TAGS[name]?.segments.includes(segment))
  if (tag === undefined) throw new Error(`No tag has the segment ${segment} of ${path}`)
  return tag
}

const ACCESS_DESCRIPTIONS: Record<Access, string> = {
  public: 'Needs no sign-in.',
  link: 'Needs a one-time link, whose token is in the body.',
  signed_in: 'Needs a sign-in.',
  member: 'Needs the role `member` or a higher one.',
  admin: 'Needs the role `admin` or `owner`.',
  owner: 'Needs the role `owner`.',
}

const ERRORS: readonly DescribedError[] = [
  {
    status: 400,
    description:
      'The request cannot be read: `invalid_request`, `invalid_json`, `unsupported_media_type`, `body_too_large`.',
  },
  { status: 401, description: 'Not signed in: `unauthorized`; or `sign_in_failed`.' },
  {
    status: 403,
    description:
      '`forbidden_for_role`, `confirmation_required` (confirm with the password, then try again), `cross_site_request`, or `organization_suspended`.',
  },
  { status: 404, description: 'Unknown, or not visible to the person: `not_found`.' },
  {
    status: 409,
    description:
      '`changed_meanwhile` with the object as it is now in `current`, or a rule is not met: `name_taken`, `id_taken`, `email_taken`, `last_owner`, `link_not_usable`, `not_resendable`, `manifest_too_large`, `workflow_busy`, `quota_exceeded`, `workflow_inactive`, `no_active_api_trigger`, `no_users_with_access`, `session_closed`, `source_changed`, `idempotency_conflict`.',
  },
  {
    status: 422,
    description:
      '`validation_error` with one entry in `details` for each failing field; `verification_failed` with `reason` if the endpoint did not confirm.',
  },
  {
    status: 421,
    description: '`misdirected_request`: the host is neither that of `APP_URL` nor loopback.',
  },
  { status: 429, description: '`rate_limited`: try again after `Retry-After` seconds.' },
  { status: 500, description: 'An unexpected error: `internal_error`.' },
  {
    status: 503,
    description: '`service_unavailable`: the database or the dispatcher does not answer; try again.',
  },
]

function toDescribed(operation: AppOperation): DescribedOperation {
  const { body, description, path, success, access } = operation
  const { maxBytes, maxMembers } = bodyLimitsOf(operation)
  const limits = `\n\nA body has at most ${maxBytes / 1024} KiB, and ${maxMembers} fields and list items.`
  return {
    ...operation,
    tag: tagOf(path),
    description: `${description}\n\n${ACCESS_DESCRIPTIONS[access]}${body ? limits : ''}`,
    isOpen: isOpen(operation),
    successes: [success],
  }
}
