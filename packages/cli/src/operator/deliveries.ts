import { DELIVERY_OUTCOMES, type DeliveryOutcome } from '@workflow-service/contract'
import {
  createResendJob,
  findResendJob,
  newId,
  operatorOf,
  previewResends,
  type ResendFilter,
} from '@workflow-service/database'
import type { OrganizationContext } from '../cli-context.ts'
import { CliError } from '../cli-error.ts'
import type { CommandResult } from '../command-result.ts'
import { parseTime, type RESEND_FIELDS } from '../parse-options.ts'
import { findSource, findWorkflowId } from './find.ts'

type Condition = (typeof RESEND_FIELDS)[number]

interface ResendOptions {
  where?: Partial<Record<Condition, string>>
  rate: number
  id?: string
  dryRun?: boolean
}

export async function resend(
  ctx: OrganizationContext,
  { where = {}, rate, id = newId(), dryRun }: ResendOptions,
): Promise<CommandResult> {
  const { db, organization } = ctx
  if (Object.keys(where).length === 0)
    throw new CliError('Name at least one condition, such as --where outcome=rejected.')
  const { outcome, status, search, since, until, attention } = where
  if (outcome !== undefined && !DELIVERY_OUTCOMES.some((each) => each === outcome)) {
    throw new CliError(`An outcome is one of ${DELIVERY_OUTCOMES.join(', ')}.`)
  }
  if (status !== undefined && !/^\d{3}$/.test(status)) throw new CliError('A status is a number such as 500.')
  if (attention !== undefined && attention !== 'yes' && attention !== 'no')
    throw new CliError('attention is yes or no.')
  const filter: ResendFilter = {
    sourceId: where.source === undefined ? undefined : (await findSource(ctx, where.source)).id,
    workflowId: await findWorkflowId(ctx, where.workflow),
    outcome: outcome as DeliveryOutcome | undefined,
    status: status === undefined ? undefined : Number(status),
    search,
    since: since === undefined ? undefined : parseTime(since),
    until: until === undefined ? undefined : parseTime(until),
    needsAttention: attention === undefined ? undefined : attention === 'yes',
  }
  const viewer = { organizationId: organization.id, memberId: null }
  const preview = await previewResends(db, viewer, filter)
  const counts = preview.sources.map(
    ({ name, count, needs_approval: needs }) =>
      `  ${name}: ${count}${needs ? ', not sent: it asks for approval' : ''}\n`,
  )
  if (preview.is_more) counts.push('  More match: send the others again afterwards.\n')
  // A repeated call finds its job, whose payloads may all be sent by now.
  if (dryRun || (preview.total === 0 && !(await findResendJob(db, viewer, id)))) {
    return {
      json: preview,
      text: () => `${preview.total} payloads${dryRun ? ' would be sent' : ''}.\n${counts.join('')}`,
    }
  }
  const by = operatorOf(organization.id)
  const previewedAt = new Date(preview.previewed_at)
  const isAny = await createResendJob(db, viewer, { id, filter, previewedAt, perSecond: rate, by })
  const job = await findResendJob(db, viewer, id)
  if (!job && isAny) throw new CliError(`A job of another organization has the id ${id}. Choose another, or omit it.`)
  if (!job) throw new CliError('No payload can be sent again: they were sent meanwhile, or a running job has them.')
  return {
    json: job,
    text: () => `Sending ${job.total} payloads again as job ${job.id}, ${job.per_second} a second.\n${counts.join('')}`,
  }
}
