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

/** A workflow as a list names it. The same version means the same document, now and later. */
export interface WorkflowVersion {
  readonly id: string
  readonly version: string
}

/** One page of the list. The documents of those versions that the caller does not have are `findWorkflows`'s. */
export interface WorkflowPageRows {
  readonly workflows: readonly WorkflowVersion[]
  /** Where the next page begins; null on the last page. */
  readonly next: WorkflowPosition | null
}

/** Which workflow to look up. */
export interface WorkflowLookUp {
  readonly organizationId: string
  readonly workflowId: string
}

/** A workflow as it is now. */
export interface WorkflowDocument {
  readonly version: string
  /** A WorkflowOut as JSON text, made by Postgres. */
  readonly json: string
}

const MILLISECONDS_UTC = `'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'`

/** Contract 2, User: the full name out of what is set of first and last name. */
const USER_NAME = `trim(concat_ws(' ', nullif(first_name, ''), nullif(last_name, '')))`

/** The JSON of a text, an array of texts, a boolean or an id; `null` for NULL. */
const toJson = (sql: string): string => `coalesce(to_json(${sql})::text, 'null')`

/** The JSON of what is never NULL and never needs an escape. */
const toPlainJson = (sql: string): string => `'"' || ${sql} || '"'`

/** A JSON object as text, of fields that are JSON as text: quicker than json_build_object, and without its spaces. */
function jsonObject(fields: Record<string, string>): string {
  const parts = Object.entries(fields).map(([name, sql], index) => `'${index === 0 ? '{' : ','}"${name}":' || ${sql}`)
  return `(${parts.join(' || ')} || '}')`
}

/** A JSON array as text, out of all rows; empty without any. */
function jsonArray(item: string, order: string): string {
  return `coalesce('[' || string_agg(${item}, ',' ORDER BY ${order}) || ']', '[]')`
}

const USERS = jsonArray(jsonObject({ email: toJson('u.email'), name: toJson(USER_NAME) }), 'u.email')

const EVENTS = jsonArray(jsonObject({ slug: toJson('e.slug'), name: toJson('e.name') }), 'e.position')

const SUBAGENT_SOURCES = jsonArray(
  jsonObject({ id: toJson('s.source_id'), name: toJson('s.name'), type: toJson('s.type') }),
  `s.type = 'platform_internal', s.name, s.position`,
)

const TRIGGERS = jsonArray(
  jsonObject({
    id: toPlainJson('t.id'),
    name: toJson('t.name'),
    is_active: 't.is_active::text',
    trigger_source: jsonObject({ slug: toJson('t.source_slug'), name: toJson('t.source_name') }),
    events: `(SELECT ${EVENTS} FROM trigger_events e WHERE e.trigger_id = t.id)`,
    filters: `coalesce(t.filters::text, 'null')`,
    input_message: toJson('t.input_message'),
    subagent_sources: `(SELECT ${SUBAGENT_SOURCES} FROM subagent_sources s WHERE s.trigger_id = t.id)`,
  }),
  't.created_at, t.id',
)

/** No two files have the same place: an index has them in this order. */
const FILES = jsonArray(
  jsonObject({ id: toPlainJson('f.id'), name: toJson('f.name'), path: toJson('f.path') }),
  'f.path, f.name',
)

/**
 * A WorkflowOut out of the row `w`, with every order of contract 2: users by email, triggers oldest first, their sources
 * with the built-in ones last and then by name, files by folder and name. What is sorted for an answer is COLLATE "C",
 * hence by code point. A `company_wide` workflow lists everyone in the organization; any other the users named for it.
 * File contents are not read. Code that writes a column that is shown here also writes a new version.
 */
const WORKFLOW_JSON = jsonObject({
  id: toPlainJson('w.id'),
  name: toJson('w.name'),
  description: toJson('w.description'),
  scope: toJson('w.scope'),
  is_active: 'w.is_active::text',
  auto_run: jsonObject({ enabled: toJson('w.auto_run_enabled'), frequency: toJson('w.auto_run_frequency') }),
  users: `CASE w.scope WHEN 'company_wide'
    THEN (SELECT users FROM everyone WHERE organization_id = w.organization_id)
    ELSE (SELECT ${USERS} FROM workflow_users wu JOIN users u ON u.id = wu.user_id WHERE wu.workflow_id = w.id) END`,
  triggers: `(SELECT ${TRIGGERS} FROM triggers t WHERE t.workflow_id = w.id)`,
  files: `(SELECT ${FILES} FROM files f WHERE f.workflow_id = w.id)`,
  created_at: toPlainJson(`to_char(w.created_at AT TIME ZONE 'UTC', ${MILLISECONDS_UTC})`),
  updated_at: toPlainJson(`to_char(w.updated_at AT TIME ZONE 'UTC', ${MILLISECONDS_UTC})`),
})

/**
 * What is asked for: any number of look-ups. They come as JSON rather than as arrays, whose length the planner would look
 * at: then a plan for any length seems dearer than one made anew each time, and making it takes longer than carrying it
 * out. Rows are found by LATERAL with LIMIT 1, hence by index whatever the planner thinks of their number.
 */
const ASKED = `
  ROWS FROM (json_to_recordset($1::json) AS (organization_id uuid, workflow_id uuid))
    WITH ORDINALITY AS asked (organization_id, workflow_id, place)
  CROSS JOIN LATERAL (
    SELECT id, organization_id, name, description, scope, is_active, auto_run_enabled, auto_run_frequency,
           created_at, updated_at, version
    FROM workflows WHERE organization_id = asked.organization_id AND id = asked.workflow_id
    LIMIT 1
  ) AS w
  CROSS JOIN LATERAL (SELECT users_version FROM organizations WHERE id = asked.organization_id LIMIT 1) AS organization`

/**
 * What identifies the content of a document: the version of the workflow, and that of the organization's users, whose names
 * it shows. Each is a random value that is written in the transaction that changes the data, while the workflow's row (for
 * users: the organization's row) is locked: two writers of one document commit one after the other, so a snapshot that
 * shows the same two versions shows the same document.
 */
const VERSION = `w.version || ' ' || organization.users_version`

/** Apart from the documents', since Postgres prepares all parts of a statement each time, those not needed included. */
const FIND_VERSIONS: NamedStatement = {
  name: 'find-workflow-versions',
  text: `SELECT asked.place::int AS place, ${VERSION} AS version FROM ${ASKED}`,
}

/** Everyone in an organization is read only when a workflow needs it, and once for all of them. */
const FIND: NamedStatement = {
  name: 'find-workflows',
  text: `
    WITH found AS MATERIALIZED (SELECT asked.place, w.*, ${VERSION} AS answered_version FROM ${ASKED}),
    everyone AS MATERIALIZED (
      SELECT organization_id, (SELECT ${USERS} FROM users u WHERE u.organization_id = asked.organization_id) AS users
      FROM (SELECT DISTINCT organization_id FROM found WHERE scope = 'company_wide') AS asked
    )
    SELECT w.place::int AS place, w.answered_version AS version, ${WORKFLOW_JSON} AS json FROM found w`,
}

/** What is answered of the rows of `page (id, created_at, version)`, one more than asked for when more follow. */
const PAGE_COLUMNS = `
  id, created_at AS "createdAt",
  version || ' ' || (SELECT users_version FROM organizations WHERE id = $1) AS version`

/**
 * The most that a page holds (contract 5). Tables are read with this limit, and a page's own is set on what that gives:
 * where Postgres sees no number, it expects a tenth of all rows. Where the page begins and what is searched for stand in
 * a SELECT of their own: knowing them, Postgres thinks a plan for just these cheaper the larger the table is, and makes
 * one at each call, which takes as long as carrying it out.
 */
const MAX_PAGE = 100

const LIST: NamedStatement = {
  name: 'list-workflows',
  text: `
    SELECT ${PAGE_COLUMNS} FROM (
      SELECT id, created_at, version FROM (
        SELECT id, created_at, version FROM workflows
        WHERE organization_id = $1 AND (created_at, id) > ((SELECT $3::timestamptz), (SELECT $4::uuid))
        ORDER BY created_at, id LIMIT ${MAX_PAGE + 1}
      ) AS page
      ORDER BY created_at, id LIMIT (SELECT $2 + 1)
    ) AS page
    ORDER BY created_at, id`,
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
    WITH near AS MATERIALIZED (
      SELECT id, created_at, version, strpos(search_text, $5) > 0 AS is_match FROM workflows
      WHERE organization_id = $1 AND (created_at, id) > ((SELECT $3::timestamptz), (SELECT $4::uuid))
      ORDER BY created_at, id LIMIT ${NEAR_ROWS}
    ),
    counts AS MATERIALIZED (
      SELECT count(*) FILTER (WHERE is_match) AS matches,
             count(*) FILTER (WHERE is_match) <= $2 AND count(*) = ${NEAR_ROWS} AS is_open,
             max(created_at) AS last_created_at, (array_agg(id ORDER BY created_at DESC, id DESC))[1] AS last_id
      FROM near
    ),
    page AS MATERIALIZED (
      SELECT id, created_at, version FROM (
        SELECT id, created_at, version FROM near WHERE is_match
        UNION ALL
        (
          SELECT id, created_at, version FROM workflows
          WHERE (SELECT is_open AND matches >= ${FREQUENT_MATCHES} FROM counts)
            AND organization_id = $1
            AND (created_at, id) > ((SELECT last_created_at FROM counts), (SELECT last_id FROM counts))
            AND strpos(search_text, $5) > 0
          ORDER BY created_at, id LIMIT ${MAX_PAGE + 1}
        )
        UNION ALL
        (
          SELECT id, created_at, version FROM (
            SELECT id, created_at, version, search_text FROM workflows
            WHERE (SELECT is_open AND matches < ${FREQUENT_MATCHES} FROM counts)
              AND workflow_search_grams(organization_id, search_text, 1)
                @> (SELECT workflow_search_grams($1, $5, least(char_length($5), 3)))
              AND organization_id = $1
            OFFSET 0
          ) AS candidates
          WHERE (created_at, id) > ((SELECT last_created_at FROM counts), (SELECT last_id FROM counts))
            AND strpos(search_text, $5) > 0
          ORDER BY created_at, id LIMIT ${MAX_PAGE + 1}
        )
      ) AS found
      ORDER BY created_at, id LIMIT (SELECT $2 + 1)
    )
    SELECT ${PAGE_COLUMNS} FROM page ORDER BY created_at, id`,
}

/** For tests of how Postgres carries them out. */
export const WORKFLOW_STATEMENTS = { find: FIND, versions: FIND_VERSIONS, list: LIST, search: SEARCH } as const

/** Before everything: for a page from the beginning. */
const BEGINNING: readonly [string, string] = ['-infinity', '00000000-0000-0000-0000-000000000000']

/** The workflows as they are now, in the order asked; null for one that the organization does not have. */
export async function findWorkflows(
  db: Pick<Database, 'pool'>,
  asked: readonly WorkflowLookUp[],
): Promise<(WorkflowDocument | null)[]> {
  const { rows } = await runStatement<WorkflowDocument & { place: number }>(db, FIND, [toAsked(asked)])
  const found = asked.map((): WorkflowDocument | null => null)
  for (const { place, version, json } of rows) found[place - 1] = { version, json }
  return found
}

/**
 * The versions of the workflows as they are now, in the order asked; null for one that the organization does not have. The
 * same version means the same document: whoever has it need not read it again.
 */
export async function findWorkflowVersions(
  db: Pick<Database, 'pool'>,
  asked: readonly WorkflowLookUp[],
): Promise<(string | null)[]> {
  const { rows } = await runStatement<{ place: number; version: string }>(db, FIND_VERSIONS, [toAsked(asked)])
  const found = asked.map((): string | null => null)
  for (const { place, version } of rows) found[place - 1] = version
  return found
}

function toAsked(asked: readonly WorkflowLookUp[]): string {
  return JSON.stringify(asked.map((each) => ({ organization_id: each.organizationId, workflow_id: each.workflowId })))
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
    workflows: shown.map(({ id, version }) => ({ id, version })),
    next: last ? { createdAt: last.createdAt, id: last.id } : null,
  }
}

interface PageRow extends WorkflowVersion {
  readonly createdAt: Date
}
