import type { Queryable } from '../connection/index.ts'

// Each is SQL for the amounts that count of the owner $1: an organization, or for triggers and files a workflow.
// Deleted, revoked and closed things do not count.
const COUNTED = {
  workflows: 'SELECT 1 FROM workflows WHERE organization_id = $1 AND deleted_at IS NULL',
  triggers: 'SELECT 1 FROM triggers WHERE workflow_id = $1',
  files: 'SELECT 1 FROM files WHERE workflow_id = $1',
  // octet_length reads only the head of a text that is stored apart.
  file_bytes: `SELECT octet_length(content) FROM workflows JOIN files ON files.workflow_id = workflows.id
    WHERE organization_id = $1 AND deleted_at IS NULL`,
  webhook_sources: 'SELECT 1 FROM webhook_sources WHERE organization_id = $1 AND deleted_at IS NULL',
  lookups: 'SELECT 1 FROM lookups WHERE organization_id = $1',
  lookup_bytes: 'SELECT octet_length(tools::text) FROM lookups WHERE organization_id = $1',
  // Starts of the API create sessions too, without a limit: those are not empty.
  empty_sessions: `SELECT 1 FROM (SELECT is_open, last_start_number FROM sessions WHERE organization_id = $1
    ORDER BY created_at DESC, id DESC LIMIT 2 * $2::bigint) AS newest WHERE is_open AND last_start_number = 0`,
  api_keys: 'SELECT 1 FROM api_keys WHERE organization_id = $1 AND revoked_at IS NULL',
  users: 'SELECT 1 FROM users WHERE organization_id = $1',
}

/** What an organization may have a limited number of. */
export type QuotaKind = keyof typeof COUNTED

/** A change that quotas limit: the most of each kind. Kinds that it does not have are not limited. */
export interface LimitedByQuotas {
  readonly quotas?: { readonly [Kind in QuotaKind]?: number }
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

interface LimitedChange extends LimitedByQuotas {
  readonly principal: { readonly organizationId: string }
}

/**
 * Refuses a change that has added something, or made it larger, beyond a quota. Called after the statement that wrote
 * it, in its transaction: from here on such changes of an organization wait for each other, so that none of several at
 * once exceeds a quota.
 * @param ownerId The workflow of a trigger or file.
 * @throws QuotaExceededError
 */
export async function assertQuota(
  client: Queryable,
  { quotas = {}, principal: { organizationId } }: LimitedChange,
  kind: QuotaKind,
  ownerId = organizationId,
): Promise<void> {
  const max = quotas[kind]
  if (max === undefined) return
  await client.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`quotas of ${organizationId}`])
  const { rows } = await client.query<{ exceeds: boolean }>(
    `SELECT coalesce(sum(n), 0) > $2::bigint AS exceeds FROM (${COUNTED[kind]}) AS counted (n)`,
    [ownerId, max],
  )
  if (rows[0]?.exceeds) throw new QuotaExceededError(kind)
}
