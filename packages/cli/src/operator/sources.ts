import { type DeliveryOut, formatActor } from '@workflow-service/contract'
import {
  findWebhookSource,
  listWebhookSources,
  newId,
  OPERATOR,
  operatorOf,
  recordAuditEvent,
} from '@workflow-service/database'
import { InternalCallError } from '@workflow-service/service-kit/internal-client'
import { type CommandResult, listResult } from '../command-result.ts'
import type { OrganizationContext } from '../cli-context.ts'
import { findSource } from './find.ts'
import { readJsonObject } from '../read-file.ts'
import { paint, showDuration, showTime } from '../terminal.ts'

const OPERATOR_HEADERS = { 'X-Actor': formatActor({ user_id: null, name: OPERATOR.name, address: null }) }

export async function list({ db, organization }: OrganizationContext): Promise<CommandResult> {
  return listResult(
    await listWebhookSources(db, organization.id),
    [
      { title: 'NAME', value: ({ name }) => name, cut: 'name' },
      { title: 'ID', value: ({ id }) => id, cut: 'id' },
      { title: 'SIGNED', value: ({ has_signing_secret }) => (has_signing_secret ? 'yes' : 'no') },
      {
        title: 'CONFIRMED',
        value: ({ verified_at: at }) => (at ? showTime(at) : 'never'),
        shortValue: ({ verified_at: at }) => (at ? showTime(at).slice(0, 10) : 'never'),
      },
      { title: 'PAUSED', value: ({ paused_at: at }) => (at ? showTime(at) : '') },
      { title: 'ENDPOINT', value: ({ endpoint_url }) => endpoint_url },
    ],
    `${organization.name} has no webhook sources. Create them with wf apply and a manifest.`,
  )
}

export function pause(ctx: OrganizationContext, text: string): Promise<CommandResult> {
  return setPaused(ctx, text, 'pauseWebhookSource')
}

export function resume(ctx: OrganizationContext, text: string): Promise<CommandResult> {
  return setPaused(ctx, text, 'resumeWebhookSource')
}

async function setPaused(
  ctx: OrganizationContext,
  text: string,
  operation: 'pauseWebhookSource' | 'resumeWebhookSource',
): Promise<CommandResult> {
  const { id, name } = await findSource(ctx, text)
  await ctx.dispatcher().call(operation, {
    params: { organization_id: ctx.organization.id, source_id: id },
    headers: OPERATOR_HEADERS,
  })
  const isPaused = operation === 'pauseWebhookSource'
  const { name: organization, isSuspended } = ctx.organization
  const when = isSuspended ? `once ${organization} is not suspended any more` : 'now'
  return {
    json: { source_id: id, is_paused: isPaused },
    // A command with the id: to a shell, a name such as $(…) would be a command, too.
    text: () =>
      isPaused
        ? `${name} is paused. Its runs wait, up to 3 days, until: wf sources resume ${id}\n`
        : `${name} is resumed: what waited is sent ${when}.\n`,
  }
}

export async function test(ctx: OrganizationContext, text: string): Promise<CommandResult> {
  const { id, name } = await findSource(ctx, text)
  const { body: delivery } = await ctx.dispatcher().call('testWebhookSource', {
    params: { organization_id: ctx.organization.id, source_id: id },
    headers: OPERATOR_HEADERS,
  })
  return toResult(name, delivery, ['Confirmed.', 'Not confirmed.'])
}

export async function send(
  ctx: OrganizationContext,
  text: string,
  { payload: file }: { payload?: string },
): Promise<CommandResult> {
  const { db, organization } = ctx
  const { id, name } = await findSource(ctx, text)
  const payload =
    file === undefined
      ? ((await findWebhookSource(db, organization.id, id))?.example_request_body ?? {})
      : await readJsonObject(ctx, file)
  const request = {
    params: { delivery_id: newId() },
    body: { organization_id: organization.id, source_id: id, payload },
  }
  const { body: delivery } = await ctx
    .dispatcher()
    .call('sendPayload', request)
    .catch((error: unknown) => {
      // Another call has another id, with which the payload is sent again.
      if (error instanceof InternalCallError && error.status === undefined) {
        const where = `wf logs ${id} shows it`
        ctx.terminal.writeError(`Warning: If the dispatcher received the payload, it was sent: ${where}.\n`)
      }
      throw error
    })
  await recordAuditEvent(db.pool, {
    ...operatorOf(organization.id),
    action: 'webhook_source.tested',
    target: { kind: 'webhook_source', id, name },
    changes: [{ field: 'delivery_id', old: null, new: delivery.id }],
  }).catch((error: unknown) => {
    // The payload is sent: an error would ask for it to be sent again.
    const why = ctx.explain(error)?.message ?? String(error)
    ctx.terminal.writeError(`Warning: The audit log does not have this payload. ${why}\n`)
  })
  const answer = delivery.answer === null ? '' : `It answered ${JSON.stringify(delivery.answer)}.\n`
  return toResult(name, delivery, ['Accepted.', 'Not accepted.'], answer)
}

/** The result of one request, which `good` or `bad` sums up. */
function toResult(name: string, delivery: DeliveryOut, [good, bad]: [string, string], answer = ''): CommandResult {
  const { outcome, status, reason, duration_ms: ms } = delivery
  const isAccepted = outcome === 'accepted'
  const took = ms === null ? '' : ` after ${showDuration(ms)}`
  const result =
    reason === null ? ` answered with status ${status}${took}.` : `: ${reason}${took && ` (${took.trim()})`}`
  return {
    json: delivery,
    text: (terminal) =>
      `${isAccepted ? paint(terminal, 'green', good) : paint(terminal, 'red', bad)} ${name}${result}\n${answer}`,
    exitStatus: isAccepted ? 0 : 1,
  }
}
