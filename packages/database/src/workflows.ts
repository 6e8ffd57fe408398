import { type Database, type NamedStatement, runStatement } from './client.ts'
import { foldSearch } from './search-text.ts'

/** A place in the list: everything after this workflow. Both values never change, and their pair is unique. */
export interface WorkflowPosition {
  readonly createdAt: Date
  readonly id: string
}

/** What to list: a page of at most `limit` workflows after a place, all or those that a search finds. */
export interface WorkflowQuery {
  readonly limit: number
  readonly after?: WorkflowPosition
  /** As the caller sent it; empty finds everything. */
  readonly search?: string
}

/** One page of the list. Each workflow is a WorkflowOut as JSON text, made by Postgres and not parsed on the way. */
export interface WorkflowPageRows {
  readonly workflows: readonly string[]
  /** Where the next page begins; null on the last page. */
  readonly next: WorkflowPosition | null
}

const MILLISECONDS_UTC = `'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'`

/** Contract 2, User: the full name out of what is set of first and last name. */
const USER_NAME = `trim(concat_ws(' ', nullif(first_name, ''), nullif(last_name, '')))`

/**
 * A WorkflowOut out of the row `w`, with every order of contract 2: users by email, triggers oldest first, their sources
 * with the built-in ones last and then by name, files by folder and name. What is sorted for an answer is COLLATE "C",
 * hence by code point. A `company_wide` workflow lists everyone in the organization; any other the users named for it.
 * File contents are not read.
 */
const WORKFLOW_JSON = `
  json_build_object(
    'id', w.id,
    'name', w.name,
    'description', w.description,
    'scope', w.scope,
    'is_active', w.is_active,
    'auto_run', json_build_object('enabled', w.auto_run_enabled, 'frequency', w.auto_run_frequency),
    'users', coalesce(
      CASE w.scope WHEN 'company_wide' THEN (SELECT users FROM everyone) ELSE (
        SELECT json_agg(json_build_object('email', u.email, 'name', ${USER_NAME}) ORDER BY u.email)
        FROM workflow_users wu JOIN users u ON u.id = wu.user_id
        WHERE wu.workflow_id = w.id
      ) END, '[]'),
    'triggers', coalesce((
      SELECT json_agg(
        json_build_object(
          'id', t.id,
          'name', t.name,
          'is_active', t.is_active,
          'trigger_source', json_build_object('slug', t.source_slug, 'name', t.source_name),
          'events', coalesce((
            SELECT json_agg(json_build_object('slug', e.slug, 'name', e.name) ORDER BY e.position)
            FROM trigger_events e WHERE e.trigger_id = t.id
          ), '[]'),
          'filters', t.filters,
          'input_message', t.input_message,
          'subagent_sources', coalesce((
            SELECT json_agg(
              json_build_object('id', s.source_id, 'name', s.name, 'type', s.type)
              ORDER BY s.type = 'platform_internal', s.name, s.position
            )
            FROM subagent_sources s WHERE s.trigger_id = t.id
          ), '[]')
        ) ORDER BY t.created_at, t.id
      )
      FROM triggers t WHERE t.workflow_id = w.id
    ), '[]'),
    'files', coalesce((
      SELECT json_agg(json_build_object('id', f.id, 'name', f.name, 'path', f.path) ORDER BY f.path, f.name, f.id)
      FROM files f WHERE f.workflow_id = w.id
    ), '[]'),
    'created_at', to_char(w.created_at AT TIME ZONE 'UTC', ${MILLISECONDS_UTC}),
    'updated_at', to_char(w.updated_at AT TIME ZONE 'UTC', ${MILLISECONDS_UTC})
  )::text`

/** Everyone in the organization $1, read only when a workflow needs it, and once for all of a page. */
const EVERYONE = `
  everyone AS MATERIALIZED (
    SELECT json_agg(json_build_object('email', email, 'name', ${USER_NAME}) ORDER BY email) AS users
    FROM users WHERE organization_id = $1
  )`

const FIND: NamedStatement = {
  name: 'find-workflow',
  text: `
    WITH ${EVERYONE}
    SELECT ${WORKFLOW_JSON} AS json FROM workflows w WHERE w.organization_id = $1 AND w.id = $2`,
}

/** A page out of the rows of `page (id, created_at)`, of which there is one more than asked for when more follow. */
const PAGE_JSON = `
  SELECT w.id, w.created_at AS "createdAt",
         CASE WHEN row_number() OVER (ORDER BY w.created_at, w.id) <= $2 THEN ${WORKFLOW_JSON} END AS json
  FROM page JOIN workflows w ON w.id = page.id
  ORDER BY w.created_at, w.id`

const LIST: NamedStatement = {
  name: 'list-workflows',
  text: `
    WITH ${EVERYONE},
    page AS MATERIALIZED (
      SELECT id FROM workflows
      WHERE organization_id = $1 AND (created_at, id) > ($3::timestamptz, $4::uuid)
      ORDER BY created_at, id LIMIT $2 + 1
    )
    ${PAGE_JSON}`,
}

/** As many rows of the list as a search looks at before it turns to the search index. */
const NEAR_ROWS = 250
/** With at least this many matches among them, about as many are met in each further stretch: the index is not needed. */
const FREQUENT_MATCHES = 4

/**
 * A search in the list's order. The search index finds what is rare at once, but gives it in no order: all matches have to
 * be read and sorted. What is frequent is found quicker by going on along the list. Hence:
 *
 * 1. \`near\` looks at the next rows of the list. Often that is the page, or the list ends there.
 * 2. Else, when matches were frequent among them, \`further\` goes on along the list until the page is full.
 * 3. Else \`rare\` asks the index, and reads all that it finds.
 *
 * A step that is not needed is not begun: Postgres judges the condition on the counts first ("One-Time Filter").
 */
const SEARCH: NamedStatement = {
  name: 'search-workflows',
  text: `
    WITH ${EVERYONE},
    near AS MATERIALIZED (
      SELECT id, created_at, strpos(search_text, $5) > 0 AS is_match FROM workflows
      WHERE organization_id = $1 AND (created_at, id) > ($3::timestamptz, $4::uuid)
      ORDER BY created_at, id LIMIT ${NEAR_ROWS}
    ),
    counts AS MATERIALIZED (
      SELECT count(*) FILTER (WHERE is_match) AS matches,
             count(*) FILTER (WHERE is_match) <= $2 AND count(*) = ${NEAR_ROWS} AS is_open,
             max(created_at) AS last_created_at, (array_agg(id ORDER BY created_at DESC, id DESC))[1] AS last_id
      FROM near
    ),
    page AS MATERIALIZED (
      SELECT id, created_at FROM (
        SELECT id, created_at FROM near WHERE is_match
        UNION ALL
        (
          SELECT id, created_at FROM workflows
          WHERE (SELECT is_open AND matches >= ${FREQUENT_MATCHES} FROM counts)
            AND organization_id = $1
            AND (created_at, id) > ((SELECT last_created_at FROM counts), (SELECT last_id FROM counts))
            AND strpos(search_text, $5) > 0
          ORDER BY created_at, id LIMIT $2 + 1
        )
        UNION ALL
        (
          SELECT id, created_at FROM (
            SELECT id, created_at, search_text FROM workflows
            WHERE (SELECT is_open AND matches < ${FREQUENT_MATCHES} FROM counts)
              AND workflow_search_grams(organization_id, search_text, 1)
                @> workflow_search_grams($1, $5, least(char_length($5), 3))
              AND organization_id = $1
            OFFSET 0
          ) AS candidates
          WHERE (created_at, id) > ((SELECT last_created_at FROM counts), (SELECT last_id FROM counts))
            AND strpos(search_text, $5) > 0
          ORDER BY created_at, id LIMIT $2 + 1
        )
      ) AS found
      ORDER BY created_at, id LIMIT $2 + 1
    )
    ${PAGE_JSON}`,
}

/** For tests of how Postgres carries them out. */
export const WORKFLOW_STATEMENTS = { find: FIND, list: LIST, search: SEARCH } as const

/** Before everything: for a page from the beginning. */
const BEGINNING: readonly [string, string] = ['-infinity', '00000000-0000-0000-0000-000000000000']

/** A WorkflowOut as JSON text, or null when the organization has no such workflow. */
export async function findWorkflow(
  db: Pick<Database, 'pool'>,
  organizationId: string,
  workflowId: string,
): Promise<string | null> {
  const { rows } = await runStatement<{ json: string }>(db, FIND, [organizationId, workflowId])
  return rows[0]?.json ?? null
}

/**
 * A page of the organization's workflows, oldest first, in one statement whatever they hold. Pages that follow each other
 * by `next` show no workflow twice and leave out none that was there all the time, whatever is added or removed meanwhile.
 */
export async function listWorkflows(
  db: Pick<Database, 'pool'>,
  organizationId: string,
  { limit, after, search = '' }: WorkflowQuery,
): Promise<WorkflowPageRows> {
  const position = after ? [after.createdAt.toISOString(), after.id] : BEGINNING
  const values = [organizationId, limit, ...position]
  const { rows } = await (search === ''
    ? runStatement<PageRow>(db, LIST, values)
    : runStatement<PageRow>(db, SEARCH, [...values, foldSearch(search)]))
  const shown = rows.slice(0, limit)
  const last = rows.length > limit ? shown.at(-1) : undefined
  return {
    workflows: shown.map((row) => row.json!),
    next: last ? { createdAt: last.createdAt, id: last.id } : null,
  }
}

interface PageRow {
  id: string
  createdAt: Date
  /** Null for the row beyond the page. */
  json: string | null
}
