import { type Db, foldSearch, type NamedStatement, NIL_UUID, runStatement } from '../connection/index.ts'

/** A position in the list: continues after this workflow. Both values never change, and their pair is unique. */
export interface WorkflowPosition {
  readonly createdAt: Date
  readonly id: string
}

/** Which page of the list to read. */
export interface WorkflowQuery {
  /** Maximum workflows of the page. */
  readonly limit: number
  readonly after?: WorkflowPosition
  /** The search as the caller sent it; empty lists all workflows. */
  readonly search?: string
}

/** A workflow in a list. The same version means the same document, now and later. */
export interface WorkflowVersion {
  readonly id: string
  readonly version: string
}

/** A workflow of a page, and its position in the list. */
export interface ListedWorkflow extends WorkflowVersion, WorkflowPosition {}

/** One page of the list. `findWorkflows` reads the documents of the versions that the caller does not have. */
export interface WorkflowPageRows {
  readonly workflows: readonly ListedWorkflow[]
  /** Whether more workflows follow after the last one of the page. */
  readonly hasMore: boolean
}

/** Which workflow to read. */
export interface WorkflowLookUp {
  readonly organizationId: string
  readonly workflowId: string
}

/** A workflow as it is now: `start`, `users` if any, and `end` together are a WorkflowOut as JSON text. */
export interface WorkflowDocument {
  readonly version: string
  readonly start: string
  /** The list of users of a `company_wide` workflow: one object for all such workflows of the organization. */
  readonly users: OrganizationUsers | null
  readonly end: string
}

/** All users of an organization as documents list them. The same version means the same users, now and later. */
export interface OrganizationUsers {
  readonly version: string
  /** JSON text in UTF-8: with thousands of users it is larger than everything else in their documents. */
  readonly json: Buffer
}

// A version is `workflows.version` with `organizations.users_version`, since a document shows users' names. Both are random
// values. The code that changes what a document shows also sets a new version, in the same transaction and under a lock of
// the workflow's row (for users: the organization's row): two writers of a document commit one after the other, so two
// snapshots with the same version show the same document.

// LEFT JOIN looks each workflow up by its id. With JOIN, a plan that was made on an empty table reads the whole table instead,
// because PostgreSQL estimates that `deleted_at IS NULL` leaves one row.

/**
 * The document as JSON (contract README, "Resources"): users by email, triggers oldest first, their sources by name with the
 * built-in ones last, files by folder and name. The sorted columns are COLLATE "C", which is code point order. A
 * `company_wide` workflow lists all users of the organization, for which the document has null: `everyone` reads them once for
 * all workflows, and only if the caller does not know them in their current version.
 *
 * Rows are converted by row_to_json and json_agg. With json_build_object, 25 documents of 10 users, 5 triggers and 20 files
 * cost PostgreSQL 4.0 ms CPU instead of 3.0, and 9 % more bytes.
 */
const FIND_WORKFLOWS: NamedStatement = {
  name: 'find-workflows',
  text: `
    WITH found AS MATERIALIZED (
      SELECT lookup.position, lookup.users_version AS known_users_version, workflow.*,
        workflow.version || ' ' || organization.users_version AS document_version,
        organization.users_version
      FROM ROWS FROM (json_to_recordset($1::json) AS (organization_id uuid, workflow_id uuid, users_version text))
        WITH ORDINALITY AS lookup (organization_id, workflow_id, users_version, position)
      LEFT JOIN workflows AS workflow
        ON workflow.organization_id = lookup.organization_id AND workflow.id = lookup.workflow_id
        AND workflow.deleted_at IS NULL
      JOIN organizations AS organization ON organization.id = lookup.organization_id
    ),
    everyone AS MATERIALIZED (
      SELECT first_position, (
        SELECT coalesce(json_agg(item), '[]') FROM (
          SELECT email, trim(concat_ws(' ', nullif(first_name, ''), nullif(last_name, ''))) AS name
          FROM users WHERE users.organization_id = company.organization_id ORDER BY email
        ) AS item
      )::text AS users
      FROM (
        SELECT organization_id, min(position) AS first_position FROM found
        WHERE scope = 'company_wide' AND known_users_version IS DISTINCT FROM users_version
        GROUP BY organization_id
      ) AS company
    )
    SELECT found.position::integer AS position, found.document_version AS version,
      CASE found.scope WHEN 'company_wide' THEN found.users_version END AS "usersVersion",
      (SELECT users FROM everyone WHERE first_position = found.position) AS users, (
      SELECT row_to_json(document)::text FROM (
        SELECT found.id, found.name, found.description, found.scope, found.is_active,
          (
            SELECT row_to_json(item) FROM (
              SELECT found.auto_run_enabled AS enabled, found.auto_run_frequency AS frequency
            ) AS item
          ) AS auto_run,
          CASE found.scope
            WHEN 'company_wide' THEN NULL
            ELSE (
              SELECT coalesce(json_agg(item), '[]') FROM (
                SELECT email, trim(concat_ws(' ', nullif(first_name, ''), nullif(last_name, ''))) AS name
                FROM workflow_users JOIN users ON users.id = workflow_users.user_id
                WHERE workflow_users.workflow_id = found.id ORDER BY email
              ) AS item
            )
          END AS users,
          (
            SELECT coalesce(json_agg(item), '[]') FROM (
              SELECT id, name, is_active,
                (
                  SELECT row_to_json(item) FROM (SELECT source_slug AS slug, source_name AS name) AS item
                ) AS trigger_source,
                (
                  SELECT coalesce(json_agg(item), '[]') FROM (
                    SELECT slug, name FROM trigger_events
                    WHERE trigger_events.trigger_id = triggers.id ORDER BY position
                  ) AS item
                ) AS events,
                filters, input_message,
                (
                  SELECT coalesce(json_agg(item), '[]') FROM (
                    SELECT source_id AS id, name, type FROM subagent_sources
                    WHERE subagent_sources.trigger_id = triggers.id
                    ORDER BY type = 'platform_internal', name, position
                  ) AS item
                ) AS subagent_sources
              FROM triggers WHERE triggers.workflow_id = found.id ORDER BY created_at, id
            ) AS item
          ) AS triggers,
          (
            SELECT coalesce(json_agg(item), '[]') FROM (
              SELECT id, name, path FROM files WHERE files.workflow_id = found.id ORDER BY path, name
            ) AS item
          ) AS files,
          to_char(found.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS created_at,
          to_char(found.updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS updated_at
      ) AS document
    ) AS json
    FROM found WHERE found.id IS NOT NULL`,
}

interface WorkflowRow {
  readonly position: number
  readonly version: string
  readonly json: string
  /** Null unless the workflow is `company_wide`. */
  readonly usersVersion: string | null
  /** The users that are not known yet, in the first row of their organization. */
  readonly users: string | null
}

/** No text before it in a document contains it, since the quotes in a text are escaped. */
const ALL_USERS = '"users":null'

/**
 * The workflows as they are now, in the order of the look-ups; null for one that the organization does not have.
 * @param known The users of organizations from earlier documents: if they have not changed, they are not read again.
 */
export async function findWorkflows(
  db: Db,
  lookUps: readonly WorkflowLookUp[],
  known: Pick<ReadonlyMap<string, OrganizationUsers>, 'get'> = new Map<string, OrganizationUsers>(),
): Promise<(WorkflowDocument | null)[]> {
  const usersOf = new Map(lookUps.map(({ organizationId }) => [organizationId, known.get(organizationId)]))
  const values = [toJson(lookUps, usersOf)]
  const { rows } = await runStatement<WorkflowRow>(db, FIND_WORKFLOWS, values)
  for (const { position, usersVersion, users } of rows) {
    if (usersVersion === null || users === null) continue
    usersOf.set(lookUps[position - 1]!.organizationId, { version: usersVersion, json: Buffer.from(users) })
  }
  const found = lookUps.map((): WorkflowDocument | null => null)
  for (const { position, version, json, usersVersion } of rows) {
    const users = usersVersion === null ? undefined : usersOf.get(lookUps[position - 1]!.organizationId)
    const at = users ? json.indexOf(ALL_USERS) + ALL_USERS.length : json.length
    const start = users ? json.slice(0, at - 'null'.length) : json
    found[position - 1] = { version, start, users: users ?? null, end: json.slice(at) }
  }
  return found
}

const FIND_WORKFLOW_VERSIONS: NamedStatement = {
  name: 'find-workflow-versions',
  text: `
    SELECT lookup.position::integer AS position, workflow.version || ' ' || organization.users_version AS version
    FROM ROWS FROM (json_to_recordset($1::json) AS (organization_id uuid, workflow_id uuid))
      WITH ORDINALITY AS lookup (organization_id, workflow_id, position)
    LEFT JOIN workflows AS workflow
      ON workflow.organization_id = lookup.organization_id AND workflow.id = lookup.workflow_id
      AND workflow.deleted_at IS NULL
    JOIN organizations AS organization ON organization.id = lookup.organization_id`,
}

/** The versions of the workflows, in the order of the look-ups; null for one that the organization does not have. */
export async function findWorkflowVersions(db: Db, lookUps: readonly WorkflowLookUp[]): Promise<(string | null)[]> {
  const values = [toJson(lookUps)]
  const { rows } = await runStatement<{ position: number; version: string | null }>(db, FIND_WORKFLOW_VERSIONS, values)
  const found = lookUps.map((): string | null => null)
  for (const { position, version } of rows) found[position - 1] = version
  return found
}

function toJson(
  lookUps: readonly WorkflowLookUp[],
  usersOf?: ReadonlyMap<string, OrganizationUsers | undefined>,
): string {
  return JSON.stringify(
    lookUps.map(({ organizationId, workflowId }) => ({
      organization_id: organizationId,
      workflow_id: workflowId,
      users_version: usersOf?.get(organizationId)?.version,
    })),
  )
}

const LIST_WORKFLOWS: NamedStatement = {
  name: 'list-workflows',
  text: `
    SELECT id, created_at AS "createdAt",
      version || ' ' || (SELECT users_version FROM organizations WHERE id = $1) AS version
    FROM workflows
    WHERE organization_id = $1 AND (created_at, id) > ($2, $3) AND deleted_at IS NULL
    ORDER BY created_at, id LIMIT $4`,
}

/**
 * A search, in the order of the list. The search index finds rare matches fast, but all of them have to be read and sorted;
 * frequent matches are found faster along the list. Hence:
 *
 * 1. `near` reads the next 250 rows of the list. Often these fill the page, or the list ends there.
 * 2. Otherwise, if they contain at least 4 matches, `further` continues along the list until the page is full.
 * 3. Otherwise `rare` reads all matches from the search index.
 *
 * PostgreSQL does not execute a step whose condition on `counts` is false.
 */
const SEARCH_WORKFLOWS: NamedStatement = {
  name: 'search-workflows',
  text: `
    WITH near AS MATERIALIZED (
      SELECT id, created_at, version, strpos(search_text, $5) > 0 AS is_match FROM workflows
      WHERE organization_id = $1 AND (created_at, id) > ($2, $3) AND deleted_at IS NULL
      ORDER BY created_at, id LIMIT 250
    ),
    counts AS MATERIALIZED (
      SELECT count(*) FILTER (WHERE is_match) >= 4 AS is_frequent,
        count(*) FILTER (WHERE is_match) < $4 AND count(*) = 250 AS is_open,
        max(created_at) AS last_created_at, (array_agg(id ORDER BY created_at DESC, id DESC))[1] AS last_id
      FROM near
    ),
    further AS (
      SELECT id, created_at, version FROM workflows
      WHERE (SELECT is_open AND is_frequent FROM counts)
        AND organization_id = $1
        AND (created_at, id) > ((SELECT last_created_at FROM counts), (SELECT last_id FROM counts))
        AND deleted_at IS NULL
        AND strpos(search_text, $5) > 0
      ORDER BY created_at, id LIMIT $4
    ),
    candidate AS MATERIALIZED (
      SELECT id, created_at, version, search_text FROM workflows
      WHERE (SELECT is_open AND NOT is_frequent FROM counts)
        AND workflow_search_grams(organization_id, search_text, 1)
          @> (SELECT workflow_search_grams($1, $5, least(char_length($5), 3)))
        AND organization_id = $1 AND deleted_at IS NULL
    ),
    rare AS (
      SELECT id, created_at, version FROM candidate
      WHERE (created_at, id) > ((SELECT last_created_at FROM counts), (SELECT last_id FROM counts))
        AND strpos(search_text, $5) > 0
      ORDER BY created_at, id LIMIT $4
    )
    SELECT id, created_at AS "createdAt",
      version || ' ' || (SELECT users_version FROM organizations WHERE id = $1) AS version
    FROM (
      SELECT id, created_at, version FROM near WHERE is_match
      UNION ALL SELECT id, created_at, version FROM further
      UNION ALL SELECT id, created_at, version FROM rare
    ) AS page
    ORDER BY created_at, id LIMIT $4`,
}

/**
 * A page of the organization's workflows, oldest first (contract README, "Pagination and search"). Consecutive pages repeat
 * no workflow, and omit none that existed all the time.
 */
export async function listWorkflows(
  db: Db,
  organizationId: string,
  { limit, after, search = '' }: WorkflowQuery,
): Promise<WorkflowPageRows> {
  // One row more than the page has shows whether there is a next page.
  const values = [organizationId, after?.createdAt.toISOString() ?? '-infinity', after?.id ?? NIL_UUID, limit + 1]
  const { rows } = await (search === ''
    ? runStatement<ListedWorkflow>(db, LIST_WORKFLOWS, values)
    : runStatement<ListedWorkflow>(db, SEARCH_WORKFLOWS, [...values, foldSearch(search)]))
  return { workflows: rows.slice(0, limit), hasMore: rows.length > limit }
}
