import { findSimilar } from '@workflow-service/contract'
import { deriveId, foldCase } from '../connection/index.ts'
import { EMAIL_KEY } from '../people/index.ts'
import { type ApplyContext, findByEmail, omit } from './apply-context.ts'
import { type Difference, differenceOf, type PartRow, type Wanted } from './workflow-difference.ts'
import { insertRows } from './write-rows.ts'

/** Unknown addresses that are compared with the known ones. */
const MAX_SUGGESTIONS = 20

interface AccessRow extends PartRow {
  user_id: string
  email: string
}

export async function diffUsers(ctx: ApplyContext, wanted: readonly Wanted[]): Promise<Difference<AccessRow>> {
  const { client, organizationId } = ctx
  const emails = new Set(wanted.flatMap(({ entry }) => (entry.users ?? []).map(foldCase)))
  const { rows: known } = await client.query<{ id: string; email: string }>(
    `SELECT id, email FROM users WHERE organization_id = $1 AND ${EMAIL_KEY} = ANY ($2::text[]) ORDER BY is_duplicate, id`,
    [organizationId, [...emails]],
  )
  const created = (ctx.manifest.users ?? []).map(({ email }) => ({
    email,
    id: deriveId('user', organizationId, email),
  }))
  const users = [...known, ...created]
  const find = findByEmail(users)
  const knownEmails = users.map(({ email }) => email)
  let unknownCount = 0
  const rows: AccessRow[] = []
  for (const { id, path, entry } of wanted) {
    for (const [index, email] of (entry.users ?? []).entries()) {
      const user = find(email)
      if (user) rows.push({ workflow_id: id, user_id: user.id, email: user.email })
      else {
        const similar = unknownCount++ < MAX_SUGGESTIONS ? findSimilar(email, knownEmails) : undefined
        const advice = similar === undefined ? `list ${email} under users` : `did you mean ${similar}?`
        ctx.report(`${path}.users[${index}]`, `is no user of the organization: ${advice}`)
      }
    }
  }
  const stored = await client.query<AccessRow>(
    `SELECT access.workflow_id, access.user_id, users.email
     FROM workflow_users access JOIN users ON users.id = access.user_id WHERE access.workflow_id = ANY ($1::uuid[])`,
    [wanted.map(({ id }) => id)],
  )
  const idOf = (row: AccessRow) => row.user_id
  return differenceOf(stored.rows, rows, idOf, (before, after) => [
    { field: 'users', old: before?.email ?? null, new: after?.email ?? null },
  ])
}

export async function writeUsers(
  { client, organizationId }: ApplyContext,
  users: Difference<AccessRow>,
): Promise<void> {
  await client.query(
    `DELETE FROM workflow_users WHERE (workflow_id, user_id) IN (SELECT * FROM unnest($1::uuid[], $2::uuid[]))`,
    [users.removed.map((row) => row.workflow_id), users.removed.map((row) => row.user_id)],
  )
  const rows = users.added.map((row) => ({ organization_id: organizationId, ...omit(row, 'email') }))
  await insertRows(client, 'workflow_users', rows)
}
