import type { Queryable } from '../connection/index.ts'

/** What an organization may have a limited number of. */
export type QuotaKind =
  | 'workflows'
  | 'triggers'
  | 'files'
  | 'file_bytes'
  | 'webhook_sources'
  | 'lookups'
  | 'empty_sessions'
  | 'api_keys'
  | 'users'

/**
 * What is to be saved. `workflowId` is that of a trigger or file, or of a workflow to be copied with its files; `bytes`
 * is the size of a file.
 */
export interface SavedThing {
  readonly organizationId: string
  readonly id: string
  readonly workflowId?: string
  readonly bytes?: number
}

/** The things of a table that meet the condition count, one each; `stored`, whether the one with the id counts. */
const things = (table: string, condition: string, stored = 'true') => ({
  amounts: `SELECT 1 FROM ${table}, given WHERE ${condition}`,
  stored: `SELECT 1 FROM ${table}, given WHERE ${table}.id = given.id AND ${stored}`,
})
const OF_ORGANIZATION = 'organization_id = given.organization'
const OF_WORKFLOW = 'workflow_id = given.workflow'

/**
 * For each kind, the amounts (`n`) that count, and the size of what is stored under the id already. Deleted, revoked
 * and closed things do not count.
 */
const COUNTED: Readonly<Record<QuotaKind, { readonly amounts: string; readonly stored: string }>> = {
  workflows: things('workflows', `${OF_ORGANIZATION} AND deleted_at IS NULL`),
  triggers: things('triggers', OF_WORKFLOW),
  files: things('files', OF_WORKFLOW),
  // octet_length reads only the head of a text that is stored apart.
  file_bytes: {
    amounts: `SELECT octet_length(content) FROM given JOIN workflows ON organization_id = given.organization
      JOIN files ON files.workflow_id = workflows.id WHERE deleted_at IS NULL`,
    stored: 'SELECT octet_length(content) FROM files, given WHERE files.id = given.id',
  },
  webhook_sources: things('webhook_sources', `${OF_ORGANIZATION} AND deleted_at IS NULL`, 'deleted_at IS NULL'),
  lookups: things('lookups', OF_ORGANIZATION),
  // Starts of the API create sessions too, without a limit: those are not empty.
  empty_sessions: {
    amounts: `SELECT 1 FROM (SELECT is_open, last_start_number FROM sessions WHERE organization_id = $1
      ORDER BY created_at DESC, id DESC LIMIT 2 * $4::bigint) AS newest WHERE is_open AND last_start_number = 0`,
    stored: 'SELECT 1 FROM sessions, given WHERE sessions.id = given.id',
  },
  api_keys: things('api_keys', `${OF_ORGANIZATION} AND revoked_at IS NULL`),
  users: things('users', OF_ORGANIZATION),
}

/** What a change may need of a quota. A size has bytes. */
export interface QuotaCheck {
  readonly kind: QuotaKind
  readonly thing: SavedThing
  readonly max: number
}

/** A change that quotas limit. */
export interface LimitedByQuotas {
  readonly quotas?: readonly QuotaCheck[]
}

/** A change would take the organization beyond a quota. Nothing was written. */
export class QuotaExceededError extends Error {
  override name = 'QuotaExceededError'
  readonly kind: QuotaKind

  constructor(kind: QuotaKind) {
    super(`The quota of ${kind} is used up`)
    this.kind = kind
  }
}

/**
 * Refuses a change that would take the organization beyond a quota. What does not grow may always be saved. In a
 * transaction, the changes of an organization that quotas limit wait for each other from here on, so that none of
 * several at once exceeds a quota.
 * @throws QuotaExceededError
 */
export async function assertQuotas(client: Queryable, { quotas = [] }: LimitedByQuotas): Promise<void> {
  for (const { kind, thing, max } of quotas) {
    const { organizationId, id, workflowId, bytes } = thing
    await client.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`quotas of ${organizationId}`])
    const { amounts, stored } = COUNTED[kind]
    const { rows } = await client.query<{ exceeds: boolean }>(
      `WITH given (organization, id, workflow, max, size) AS (
         SELECT $1::uuid, $2::uuid, $3::uuid, $4::bigint,
           coalesce($5::bigint, (SELECT coalesce(sum(octet_length(content)), 0) FROM files WHERE workflow_id = $3::uuid))
       ),
         growth (n) AS (SELECT size - coalesce((${stored}), 0) FROM given)
       SELECT growth.n > 0 AND growth.n + (SELECT coalesce(sum(n), 0) FROM (${amounts}) AS counted (n)) > max AS exceeds
       FROM given, growth`,
      [organizationId, id, workflowId ?? null, max, kind === 'file_bytes' ? bytes : 1],
    )
    if (rows[0]?.exceeds) throw new QuotaExceededError(kind)
  }
}
