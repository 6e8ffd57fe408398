import type { AppListedWebhookSourceOut, AppWebhookSourceOut } from '@workflow-service/contract'
import { type Db, isoTime } from '../connection/index.ts'
import { isDeliveryVisible, queryVisible, type Viewer } from '../organizations/index.ts'
import { readSourceState } from './source-state.ts'
import type { SourceName } from './sources-for-agent.ts'

/**
 * The organization's sources that are not deleted with whether their endpoints have confirmed, sorted like the names.
 */
export async function listSourceStates(
  db: Db,
  organizationId: string,
): Promise<readonly (SourceName & { readonly is_verified: boolean })[]> {
  const { rows } = await db.pool.query<SourceName & { is_verified: boolean }>(
    `SELECT id, name, verified_at IS NOT NULL AS is_verified FROM webhook_sources
     WHERE organization_id = $1 AND deleted_at IS NULL ORDER BY name COLLATE "C", id`,
    [organizationId],
  )
  return rows
}

/** The values of open enumerations that the workflows of the organization have. */
export async function listOpenValues(db: Db, organizationId: string) {
  const { rows } = await db.pool.query<Record<'scope' | 'slug' | 'subagent_source', string[]>>(
    `SELECT coalesce(array_agg(DISTINCT scope), '{}') AS scope,
       coalesce(array_agg(DISTINCT source_slug) FILTER (WHERE source_slug IS NOT NULL), '{}') AS slug,
       coalesce(array_agg(DISTINCT type) FILTER (WHERE type IS NOT NULL), '{}') AS subagent_source
     FROM workflows LEFT JOIN triggers ON triggers.workflow_id = workflows.id
     LEFT JOIN subagent_sources ON subagent_sources.trigger_id = triggers.id
     WHERE workflows.organization_id = $1 AND workflows.deleted_at IS NULL`,
    [organizationId],
  )
  return rows[0]!
}

/** The newest request of a kind to a source, as far as a member may see it. 100 entries of the log are read at most. */
const lastRequest = (kind: 'verification' | 'payload') => `(
  SELECT json_build_object('id', delivery.id, 'outcome', delivery.outcome, 'reason', delivery.reason,
    'created_at', ${isoTime('delivery.created_at')})
  FROM (
    SELECT id, organization_id, kind, run_id, outcome, reason, created_at FROM deliveries
    WHERE source_id = source.id ${kind === 'verification' ? "AND kind = 'verification'" : ''}
    ORDER BY created_at DESC, id DESC LIMIT ${kind === 'verification' ? 1 : 100}
  ) AS delivery
  WHERE delivery.kind = '${kind}' AND delivery.organization_id = $1
    AND ${isDeliveryVisible('$2')}
  ORDER BY delivery.created_at DESC, delivery.id DESC LIMIT 1
)`

const LISTED_COLUMNS = `id, organization_id, name, endpoint_url, signing_secret IS NOT NULL AS has_signing_secret,
  created_at, updated_at, verified_at, version::text AS version, approval, paused_at, paused_by_name AS paused_by,
  ${lastRequest('verification')} AS last_verification, ${lastRequest('payload')} AS last_payload`

/** The organization's sources with their last requests, sorted by name in code point order. */
export async function listSourcesWithLastRequests(db: Db, viewer: Viewer): Promise<AppListedWebhookSourceOut[]> {
  return await queryVisible<AppListedWebhookSourceOut>(
    db,
    viewer,
    `SELECT ${LISTED_COLUMNS} FROM webhook_sources AS source
     WHERE organization_id = $1 AND deleted_at IS NULL ORDER BY name COLLATE "C", id`,
  )
}

/** One source with its last requests and its state, unless it is deleted or of another organization. */
export async function findSourceWithLastRequests(
  db: Db,
  viewer: Viewer,
  sourceId: string,
): Promise<AppWebhookSourceOut | undefined> {
  const [source] = await queryVisible<AppWebhookSourceOut>(
    db,
    viewer,
    `SELECT ${LISTED_COLUMNS}, description, example_request_body FROM webhook_sources AS source
     WHERE organization_id = $1 AND deleted_at IS NULL AND id = $3`,
    sourceId,
  )
  return source && { ...source, state: await readSourceState(db, viewer.organizationId, sourceId) }
}
