import type { Role } from '@workflow-service/contract'

/** Who reads: a person in an organization. */
export interface Viewer {
  readonly organizationId: string
  /** A member, who sees only some workflows and what follows them; null: an admin or owner, who sees everything. */
  readonly memberId: string | null
}

/** Returns what a person may see. */
export function viewerOf(person: {
  readonly organizationId: string
  readonly role: Role
  readonly userId: string
}): Viewer {
  return { organizationId: person.organizationId, memberId: person.role === 'member' ? person.userId : null }
}

/**
 * Returns the condition that the viewer sees a workflow, for the statement's parameter `$n` = `viewer.memberId`. The scalar
 * subquery finds its row by key; PostgreSQL may evaluate EXISTS by reading the whole table.
 */
export function isVisible(workflow: string, memberId: string): string {
  return `(${workflow}.deleted_at IS NULL AND ${includesViewer(workflow, memberId)})`
}

function includesViewer(workflow: string, memberId: string): string {
  return `(${memberId}::uuid IS NULL OR ${workflow}.scope = 'company_wide'
    OR (SELECT true FROM workflow_users WHERE workflow_id = ${workflow}.id AND user_id = ${memberId}))`
}

/** The newest runs of a session that are checked. An agent reads far fewer earlier runs. */
const MAX_RUNS_CHECKED = 1_000

/**
 * Returns the condition that the viewer sees a session: a member sees no session with a run of a workflow that the member cannot
 * see, because the agent of a run reads what the earlier runs of its session did. A workflow that is being deleted still counts
 * as before, so that its session neither appears nor disappears meanwhile.
 */
export function isSessionVisible(session: string, memberId: string): string {
  return `(${memberId}::uuid IS NULL OR (
    SELECT true FROM (
      SELECT workflow_id FROM starts WHERE session_id = ${session}.id ORDER BY number DESC LIMIT ${MAX_RUNS_CHECKED}
    ) AS run
    JOIN workflows AS of_session ON of_session.id = run.workflow_id
    WHERE ${includesViewer('of_session', memberId)} IS NOT TRUE LIMIT 1
  ) IS NULL)`
}

/** The expression for the name of a user: the name, or the email address without one. */
export const USER_NAME = `coalesce(nullif(trim(concat_ws(' ', nullif(users.first_name, ''), nullif(users.last_name, ''))), ''),
  (SELECT accounts.name FROM accounts WHERE accounts.id = users.account_id), users.email)`

/** A row whose columns are named as in the contract; pg returns times as dates. */
export type RowOf<Out> = { readonly [Name in keyof Out]: Out[Name] | Date }

/** Returns a row with its times as texts. */
export function toWire<Out extends object>(row: RowOf<Out>): Out {
  const entries = Object.entries<unknown>(row).map(([name, value]) => [
    name,
    value instanceof Date ? value.toISOString() : value,
  ])
  return Object.fromEntries(entries) as Out
}

/** A position in a list that is sorted by time and id, newest first. */
export interface TimePosition {
  readonly createdAt: Date
  readonly id: string
}

const FIRST_ID = '00000000-0000-0000-0000-000000000000'
const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

/**
 * Returns time and id for the condition `(created_at, id) < ($n, $m)`: entries after `after` in the list and before `until`. One
 * condition for both, because with a second one PostgreSQL may begin to read the index there, and read all newer entries.
 */
export function beforePosition(after: TimePosition | undefined, until?: Date): readonly [Date | 'infinity', string] {
  if (after && (!until || after.createdAt < until)) return [after.createdAt, after.id]
  return until ? [until, FIRST_ID] : ['infinity', LAST_ID]
}

/** A page of a list of which the viewer may not see all entries. */
export interface ReadPage<Row, Position = TimePosition> {
  readonly rows: readonly Row[]
  /** After which entry the next page begins, if others may follow. */
  readonly next: Position | undefined
}

/** Entries that are read at once for a page of a member. */
const MAX_CHUNK = 1_000

/**
 * Reads a page of the entries that the viewer sees: as many as fit, then more and more at a time until the page is full. Only a page
 * for which `maxRead` entries had few visible ones has fewer than the limit although others may follow.
 */
export async function readVisible<Row extends { readonly isVisible: boolean }, Position>(
  { limit, after, maxRead }: { limit: number; after: Position | undefined; maxRead: number },
  read: (after: Position | undefined, count: number) => Promise<readonly Row[]>,
  positionOf: (row: Row) => Position,
): Promise<ReadPage<Row, Position>> {
  const visible: Row[] = []
  let position = after
  let count = limit + 1
  for (let readCount = 0; readCount < maxRead; count = Math.min(4 * count, MAX_CHUNK)) {
    const chunk = await read(position, count)
    visible.push(...chunk.filter((row) => row.isVisible))
    const rows = visible.slice(0, limit)
    const last = chunk.at(-1)
    if (visible.length > limit) return { rows, next: positionOf(rows.at(-1)!) }
    if (last === undefined || chunk.length < count) return { rows, next: undefined }
    position = positionOf(last)
    readCount += count
  }
  return { rows: visible, next: position }
}
