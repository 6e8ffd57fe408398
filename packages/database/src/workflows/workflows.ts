import { column, type Db, foldSearch, NIL_UUID, type paging, runStatement, statement } from '../connection/index.ts'
import { isVisible, type Viewer } from '../organizations/index.ts'
import { triggersOf } from './workflow-detail.ts'

/** Which page of the list to read. */
export interface WorkflowQuery {
  /** Maximum workflows of the page. */
  readonly limit: number
  readonly after?: paging.TimePosition
  /** The search as the caller sent it; empty lists all workflows. */
  readonly search?: string
}

/** A workflow in a list. The same version means the same document, now and later. */
export interface WorkflowVersion {
  readonly id: string
  readonly version: string
}

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

// A version is `workflows.version` with `organizations.users_version`, since a document shows users' names. Both are
// random values. The code that changes what a document shows also sets a new version, in the same transaction and under
// a lock of the workflow's row (for users: the organization's row): two writers of a document commit one after the
// other, so two snapshots with the same version show the same document.

const FIND_WORKFLOWS = statement(
  'workflows/find-workflows',
  {
    position: column.integer,
    version: column.text(),
    usersVersion: column.text().orNull,
    users: column.text().orNull,
    json: column.text(),
  },
  { TRIGGERS: triggersOf('found') },
)

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
  const { rows } = await runStatement(db, FIND_WORKFLOWS, values)
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

const FIND_WORKFLOW_VERSIONS = statement('workflows/find-workflow-versions', {
  position: column.integer,
  version: column.text().orNull,
})

/** The versions of the workflows, in the order of the look-ups; null for one that the organization does not have. */
export async function findWorkflowVersions(db: Db, lookUps: readonly WorkflowLookUp[]): Promise<(string | null)[]> {
  const values = [toJson(lookUps)]
  const { rows } = await runStatement(db, FIND_WORKFLOW_VERSIONS, values)
  const found = lookUps.map((): string | null => null)
  for (const { position, version } of rows) found[position - 1] = version
  return found
}

function toJson(lookUps: readonly WorkflowLookUp[], usersOf?: ReadonlyMap<string, OrganizationUsers | undefined>) {
  return JSON.stringify(
    lookUps.map(({ organizationId, workflowId }) => ({
      organization_id: organizationId,
      workflow_id: workflowId,
      users_version: usersOf?.get(organizationId)?.version,
    })),
  )
}

const POSITION = { id: column.uuid, createdAt: column.timestamptz, version: column.text() }
const LIST_WORKFLOWS = statement('workflows/list-workflows', POSITION)
const SEARCH_WORKFLOWS = statement('workflows/search-workflows', POSITION, {
  IS_VISIBLE: isVisible('workflows', '$6'),
  IS_CANDIDATE_VISIBLE: isVisible('candidate', '$6'),
})

/**
 * A page of the workflows that the viewer sees, oldest first (contract README, "Pagination and search"). Consecutive
 * pages repeat no workflow, and omit none that existed all the time.
 */
export async function listWorkflows(
  db: Db,
  { organizationId, memberId }: Viewer,
  { limit, after, search = '' }: WorkflowQuery,
) {
  // One row more than the page has shows whether there is a next page.
  const values = [organizationId, after?.createdAt.toISOString() ?? '-infinity', after?.id ?? NIL_UUID, limit + 1]
  const { rows } = await (search === '' && memberId === null
    ? runStatement(db, LIST_WORKFLOWS, values)
    : runStatement(db, SEARCH_WORKFLOWS, [...values, foldSearch(search), memberId]))
  return {
    workflows: rows.slice(0, limit),
    /** Whether more workflows follow after the last one of the page. */
    hasMore: rows.length > limit,
  }
}
