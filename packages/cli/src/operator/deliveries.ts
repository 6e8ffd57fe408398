import { DELIVERY_OUTCOMES, type DeliveryOutcome } from '@workflow-service/contract'
import {
  createResendJob,
  findResendJob,
  operatorOf,
  previewResends,
  type ResendFilter,
} from '@workflow-service/database'
import { InvalidArgumentError } from 'commander'
import { command, type CommandResult, group, option, ORGANIZATION } from '../cli-command.ts'
import type { CliContext } from '../cli-context.ts'
import { CliError } from '../cli-error.ts'
import { findOrganization, findSource, findWorkflowId } from '../find.ts'
import { parseTime } from '../parse-options.ts'

const HELP = `
A condition is FIELD=VALUE, with the fields source, workflow, outcome, status, search, since, until and attention (yes or no). Each payload is
sent once, by the application, which must run; those of sources that ask for approval are left out. Endpoints may act twice.

Example:
  wf deliveries resend --where source="Order intake" --where status=500 --where since=2h --dry-run
`
const FIELDS = ['source', 'workflow', 'outcome', 'status', 'search', 'since', 'until', 'attention'] as const
type Conditions = Partial<Record<(typeof FIELDS)[number], string>>
const MAX_PER_SECOND = 100

/** `wf deliveries resend` */
export const deliveryCommands = group('deliveries', 'Send payloads again.', [
  command(
    'resend',
    'Send all payloads again that meet the conditions.',
    resend,
    [
      ORGANIZATION,
      option('--where <field=value>', 'a condition; may be repeated', parseCondition),
      option('--rate <n>', 'payloads for each second', parseRate, 10),
      option('--dry-run', 'only show what would be sent'),
    ],
    HELP,
  ),
])

/** @throws InvalidArgumentError */
function parseCondition(text: string, earlier: Conditions | undefined): Conditions {
  const [name = '', ...value] = text.split('=')
  const field = FIELDS.find((each) => each === name)
  if (!field || value.length === 0) throw new InvalidArgumentError(`It must be FIELD=VALUE with ${FIELDS.join(', ')}.`)
  return { ...earlier, [field]: value.join('=') }
}

/** @throws InvalidArgumentError */
function parseRate(text: string): number {
  const rate = Number(text)
  if (!Number.isInteger(rate) || rate < 1 || rate > MAX_PER_SECOND) {
    throw new InvalidArgumentError(`It must be 1 to ${MAX_PER_SECOND}.`)
  }
  return rate
}

interface ResendOptions {
  organization?: string
  where?: Conditions
  rate: number
  dryRun?: boolean
}

async function resend(ctx: CliContext, options: ResendOptions): Promise<CommandResult> {
  const { where = {}, rate, dryRun } = options
  if (Object.keys(where).length === 0)
    throw new CliError('Name at least one condition, such as --where outcome=rejected.')
  const organization = await findOrganization(ctx, options.organization)
  const { outcome, status, search, since, until, attention } = where
  if (outcome !== undefined && !DELIVERY_OUTCOMES.some((each) => each === outcome)) {
    throw new CliError(`An outcome is one of ${DELIVERY_OUTCOMES.join(', ')}.`)
  }
  if (status !== undefined && !/^\d{3}$/.test(status)) throw new CliError('A status is a number such as 500.')
  const filter: ResendFilter = {
    sourceId: where.source === undefined ? undefined : (await findSource(ctx, organization, where.source)).id,
    workflowId: await findWorkflowId(ctx, organization, where.workflow),
    outcome: outcome as DeliveryOutcome | undefined,
    status: status === undefined ? undefined : Number(status),
    search,
    since: since === undefined ? undefined : parseTime(since),
    until: until === undefined ? undefined : parseTime(until),
    needsAttention: attention === undefined ? undefined : attention === 'yes',
  }
  const viewer = { organizationId: organization.id, memberId: null }
  const preview = await previewResends(ctx.database(), viewer, filter)
  const counts = preview.sources.map(
    ({ name, count, needs_approval: needs }) =>
      `  ${name}: ${count}${needs ? ', not sent: it asks for approval' : ''}\n`,
  )
  if (dryRun || preview.total === 0) {
    return {
      json: preview,
      text: () => `${preview.total} payloads${dryRun ? ' would be sent' : ''}.\n${counts.join('')}`,
    }
  }
  const by = operatorOf(organization.id)
  const id = await createResendJob(ctx.database(), viewer, { filter, perSecond: rate, by })
  const job = id && (await findResendJob(ctx.database(), viewer, id))
  if (!job) throw new CliError('No payload can be sent again: they were sent meanwhile.')
  ctx.notify(organization.id, 'deliveries')
  return {
    json: job,
    text: () => `Sending ${job.total} payloads again as job ${job.id}, ${rate} a second.\n${counts.join('')}`,
  }
}
