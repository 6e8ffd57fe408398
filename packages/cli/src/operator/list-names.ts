import {
  findWorkflowNames,
  listApiKeys,
  listOrganizations,
  listRuns,
  listSessionRows,
  listUsers,
  listWebhookSources,
  listWorkflowNames,
} from '@workflow-service/database'
import type { OperatorContext } from '../cli-context.ts'
import type { Candidate } from '../complete-words.ts'
import { showTime } from '../terminal.ts'
import { findOrganization } from './find.ts'

const MAX_NAMES = 200
const MAX_IDS = 20

/** Lists the names or ids in the database that an argument or option can have. */
export async function listNames(
  ctx: OperatorContext,
  what: string,
  organization: string | undefined,
): Promise<Candidate[]> {
  const { db } = ctx
  const organizationId = async () => (await findOrganization(ctx, organization)).id
  switch (what) {
    case 'organization':
      return (await listOrganizations(db, { limit: MAX_NAMES })).map(toCandidate)
    case 'workflow':
      return (await listWorkflowNames(db, await organizationId(), MAX_NAMES)).map(toCandidate)
    case 'source':
      return (await listWebhookSources(db, await organizationId())).slice(0, MAX_NAMES).map(toCandidate)
    case 'key': {
      const keys = await listApiKeys(db, await organizationId(), { limit: MAX_NAMES })
      return keys.toReversed().map(({ name, prefix }) => ({ value: name, description: prefix }))
    }
    case 'user':
    case 'person': {
      const users = await listUsers(db, await organizationId(), { limit: MAX_NAMES })
      return users.map(({ email, role }) => ({ value: email, description: role ?? 'no role' }))
    }
    case 'session': {
      const sessions = await listSessionRows(db, await organizationId(), { limit: MAX_IDS })
      return sessions.map(({ id, is_open: isOpen, created_at: at }) => ({
        value: id,
        description: `${isOpen ? 'open' : 'closed'}, ${showTime(at)}`,
      }))
    }
    case 'run': {
      const runs = await listRuns(db, await organizationId(), { limit: MAX_IDS })
      const workflowIds = runs.map((run) => run.workflow_id)
      const names = await findWorkflowNames(db, await organizationId(), workflowIds)
      return runs.map(({ id, workflow_id: workflowId, status, created_at: at }) => ({
        value: id,
        description: `${names.get(workflowId) ?? ''}, ${status}, ${showTime(at)}`,
      }))
    }
    default:
      return []
  }
}

function toCandidate({ id, name }: { readonly id: string; readonly name: string }): Candidate {
  return { value: name, description: id }
}
