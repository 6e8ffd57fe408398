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
import { checkPeriod, type Conditions } from '../parse-options.ts'
import { findSource, findWorkflowId } from './find.ts'

interface ResendOptions {
  where?: Conditions
  rate: number
  id?: string
  dryRun?: boolean
}

const payloads = (count: number) => `${count} ${count === 1 ? 'payload' : 'payloads'}`

export async function resend(
  ctx: OrganizationContext,
  { where = {}, rate, id = newId(), dryRun }: ResendOptions,
): Promise<CommandResult> {
  const { db, organization } = ctx
  if (Object.keys(where).length === 0)
    throw new CliError('Name at least one condition, such as --where outcome=rejected.')
  checkPeriod(where, '')
  const { source, workflow, attention: needsAttention, ...conditions } = where
  const filter: ResendFilter = {
    ...conditions,
    sourceId: source === undefined ? undefined : (await findSource(ctx, source)).id,
    workflowId: await findWorkflowId(ctx, workflow),
    needsAttention,
  }
  const viewer = { organizationId: organization.id, memberId: null }
  // A repeated call finds its job, also if other payloads match by now.
  const earlier = dryRun ? undefined : await findResendJob(db, viewer, id)
  if (earlier) {
    const { status, done, total } = earlier
    return {
      json: earlier,
      text: () =>
        `Job ${id} was created before, and nothing is added to it: ${status}, ${done} of ${payloads(total)}.\n`,
    }
  }
  const preview = await previewResends(db, viewer, filter)
  const counts = preview.sources.map(
    ({ name, count, needs_approval: needs }) =>
      `  ${name}: ${count}${needs ? ', not sent: it asks for approval' : ''}\n`,
  )
  if (preview.is_more) counts.push('  More match: send the others again afterwards.\n')
  if (dryRun || preview.total === 0) {
    return {
      json: preview,
      text: () => `${payloads(preview.total)}${dryRun ? ' would be sent' : ''}.\n${counts.join('')}`,
    }
  }
  const by = operatorOf(organization.id)
  const previewedAt = new Date(preview.previewed_at)
  const isAny = await createResendJob(db, viewer, { id, filter, previewedAt, perSecond: rate, by })
  const job = await findResendJob(db, viewer, id)
  if (!job && isAny) throw new CliError(`A job of another organization has the id ${id}. Choose another, or omit it.`)
  if (!job)
    throw new CliError(
      'No payload can be sent again: they were sent meanwhile, are being sent, or a running job has them.',
    )
  return {
    json: job,
    text: () =>
      `Sending ${payloads(job.total)} again as job ${job.id}, ${job.per_second} a second.\n${counts.join('')}`,
  }
}
