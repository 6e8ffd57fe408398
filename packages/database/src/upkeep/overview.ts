import { OVERVIEW_WAITING_MAX, type OverviewOut } from '@workflow-service/contract'
import { type Db, NIL_UUID } from '../connection/index.ts'
import { CURRENCY, isVisible, type Viewer } from '../organizations/index.ts'
import { readAttention } from './attention.ts'
import { countLastDay } from './usage-read.ts'

const FIRST_STEPS = `
  SELECT
    (
      SELECT true FROM webhook_sources
      WHERE organization_id = $1 AND deleted_at IS NULL AND verified_at IS NOT NULL LIMIT 1
    ) IS NOT NULL AS has_verified_source,
    (
      SELECT true FROM (SELECT * FROM workflows WHERE organization_id = $1 LIMIT 1000) AS workflow
      WHERE workflow.is_active AND workflow.deleted_at IS NULL
        AND (SELECT true FROM triggers WHERE workflow_id = workflow.id AND is_active AND source_slug = 'api' LIMIT 1)
        AND CASE workflow.scope
          WHEN 'company_wide' THEN (SELECT id FROM users WHERE organization_id = $1 LIMIT 1)
          ELSE (SELECT user_id FROM workflow_users WHERE workflow_id = workflow.id LIMIT 1)
        END IS NOT NULL
      LIMIT 1
    ) IS NOT NULL AS has_startable_workflow,
    (
      SELECT true FROM api_keys
      WHERE organization_id = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now()) LIMIT 1
    ) IS NOT NULL AS has_api_key,
    -- The run of the demo is none.
    (
      SELECT bool_or(user_id IS NOT NULL) OR count(*) >= 10 FROM (
        SELECT started_at, user_id FROM starts WHERE organization_id = $1 ORDER BY created_at, id LIMIT 100
      ) AS oldest WHERE started_at IS NOT NULL
    ) IS TRUE OR (
      -- Its runs may be deleted because of their age.
      SELECT sum(count) >= 10 FROM (
        SELECT count FROM usage_hours WHERE organization_id = $1 AND kind = 'organization' AND measure = 'run_ms' LIMIT 100
      ) AS counted
    ) IS TRUE AS has_run,
    coalesce(
      (
        SELECT true FROM (SELECT id FROM webhook_sources WHERE organization_id = $1 LIMIT 1000) AS source
        CROSS JOIN LATERAL (
          SELECT kind FROM deliveries WHERE source_id = source.id ORDER BY created_at DESC, id DESC LIMIT 100
        ) AS newest
        WHERE newest.kind = 'payload' LIMIT 1
      ),
      (
        SELECT true FROM usage_hours
        WHERE organization_id = $1 AND kind = 'organization' AND measure = 'deliveries' LIMIT 1
      ),
      false
    ) AS has_delivery`

const COUNT_WAITING_RUNS = `
  SELECT count(*)::integer AS count FROM (
    SELECT DISTINCT workflow_id, run_id FROM approvals
    JOIN starts ON starts.id = run_id AND starts.status = 'waiting'
    WHERE approvals.organization_id = $1 AND approvals.status = 'waiting' AND expires_at > now() LIMIT ${OVERVIEW_WAITING_MAX}
  ) AS start
  JOIN workflows AS workflow ON workflow.id = start.workflow_id AND ${isVisible('workflow', '$2')}`

const NEARLY_SPENT = `
  SELECT workflow.id AS workflow_id, coalesce(workflow.name, organization.name) AS name,
    coalesce(workflow.day_budget, organization.month_budget)::float8 AS budget, spending.spent::float8 AS spent,
    ${CURRENCY} AS currency
  FROM model_spending AS spending
    JOIN organizations AS organization ON organization.id = spending.organization_id
    LEFT JOIN workflows AS workflow ON workflow.id = spending.workflow_id AND workflow.deleted_at IS NULL
  WHERE spending.organization_id = $1 AND (workflow.id IS NOT NULL OR spending.workflow_id = '${NIL_UUID}')
    AND spending.period = CASE
      WHEN workflow.id IS NULL THEN date_trunc('month', now() AT TIME ZONE 'UTC')::date
      ELSE (now() AT TIME ZONE 'UTC')::date
    END
    AND spending.spent >= 0.8 * CASE WHEN workflow.id IS NULL THEN organization.month_budget ELSE workflow.day_budget END
  ORDER BY workflow.name NULLS FIRST LIMIT 20`

async function readNearlySpent(db: Db, { organizationId, memberId }: Viewer): Promise<OverviewOut['budgets']> {
  if (memberId !== null) return []
  return (await db.pool.query<OverviewOut['budgets'][number]>(NEARLY_SPENT, [organizationId])).rows
}

/**
 * The first steps, the counts of the last 24 hours, and what needs attention. Reads a bounded number of rows by index.
 */
export async function readOverview(db: Db, viewer: Viewer): Promise<OverviewOut> {
  const { organizationId, memberId } = viewer
  const [steps, attention, budgets, waiting, counts] = await Promise.all([
    db.pool.query<OverviewOut['steps']>(FIRST_STEPS, [organizationId]),
    readAttention(db, viewer),
    readNearlySpent(db, viewer),
    db.pool.query<{ count: number }>(COUNT_WAITING_RUNS, [organizationId, memberId]),
    countLastDay(db, viewer),
  ])
  return { steps: steps.rows[0]!, ...counts, waiting_runs: waiting.rows[0]!.count, attention, budgets }
}
