import { type DeliveryOut, formatActor } from '@workflow-service/contract'
import {
  findWebhookSource,
  listWebhookSources,
  newId,
  OPERATOR,
  operatorOf,
  type OrganizationName,
  recordAuditEvent,
} from '@workflow-service/database'
import { type CommandResult, listResult, toSnakeCase } from '../command-result.ts'
import type { OperatorContext } from '../cli-context.ts'
import { findSource } from './find.ts'
import { readJsonObject } from '../read-json.ts'
import { paint, showDuration, showTime } from '../terminal.ts'

const OPERATOR_HEADERS = { 'X-Actor': formatActor({ user_id: null, name: OPERATOR.name, address: null }) }

export async function list(ctx: OperatorContext, organization: OrganizationName): Promise<CommandResult> {
  return listResult(
    await listWebhookSources(ctx.database(), organization.id),
    [
      { title: 'NAME', value: ({ name }) => name, cut: 'name' },
      { title: 'ID', value: ({ id }) => id, cut: 'id' },
      { title: 'SIGNED', value: ({ hasSigningSecret }) => (hasSigningSecret ? 'yes' : 'no') },
      {
        title: 'CONFIRMED',
        value: ({ verifiedAt }) => (verifiedAt ? showTime(verifiedAt) : 'never'),
        shortValue: ({ verifiedAt }) => (verifiedAt ? showTime(verifiedAt).slice(0, 10) : 'never'),
      },
      { title: 'PAUSED', value: ({ pausedAt }) => (pausedAt ? showTime(pausedAt) : '') },
      { title: 'ENDPOINT', value: ({ endpointUrl }) => endpointUrl },
    ],
    `${organization.name} has no webhook sources. Create them with wf apply and a manifest.`,
    (source) =>
      toSnakeCase(source, [
        'id',
        'name',
        'description',
        'endpointUrl',
        'hasSigningSecret',
        'exampleRequestBody',
        'createdAt',
        'updatedAt',
        'verifiedAt',
        'pausedAt',
      ]),
  )
}

export function pause(ctx: OperatorContext, organization: OrganizationName, text: string): Promise<CommandResult> {
  return setPaused(ctx, organization, text, 'pauseWebhookSource')
}

export function resume(ctx: OperatorContext, organization: OrganizationName, text: string): Promise<CommandResult> {
  return setPaused(ctx, organization, text, 'resumeWebhookSource')
}

async function setPaused(
  ctx: OperatorContext,
  organization: OrganizationName,
  text: string,
  operation: 'pauseWebhookSource' | 'resumeWebhookSource',
): Promise<CommandResult> {
  const { id, name } = await findSource(ctx, organization, text)
  await ctx.dispatcher().call(operation, {
    params: { organization_id: organization.id, source_id: id },
    headers: OPERATOR_HEADERS,
  })
  const isPaused = operation === 'pauseWebhookSource'
  return {
    json: { source_id: id, is_paused: isPaused },
    text: () =>
      isPaused
        ? `${name} is paused. Its runs wait, up to 3 days, until: wf sources resume ${JSON.stringify(name)}\n`
        : `${name} is resumed: what waited is sent now.\n`,
  }
}

export async function test(ctx: OperatorContext, organization: OrganizationName, text: string): Promise<CommandResult> {
  const source = await findSource(ctx, organization, text)
  const { body: delivery } = await ctx.dispatcher().call('testWebhookSource', {
    params: { organization_id: organization.id, source_id: source.id },
    headers: OPERATOR_HEADERS,
  })
  const isConfirmed = delivery.outcome === 'accepted'
  return {
    json: delivery,
    text: (terminal) =>
      `${paint(terminal, isConfirmed ? 'green' : 'red', isConfirmed ? 'Confirmed.' : 'Not confirmed.')} ${describe(source.name, delivery)}\n`,
    exitStatus: isConfirmed ? 0 : 1,
  }
}

export async function send(
  ctx: OperatorContext,
  organization: OrganizationName,
  text: string,
  options: { payload?: string },
): Promise<CommandResult> {
  const { id, name } = await findSource(ctx, organization, text)
  const payload = await (options.payload === undefined
    ? findWebhookSource(ctx.database(), organization.id, id).then((source) => source?.exampleRequestBody ?? {})
    : readJsonObject(ctx, options.payload))
  const { body: delivery } = await ctx.dispatcher().call('sendPayload', {
    params: { delivery_id: newId() },
    body: { organization_id: organization.id, source_id: id, payload },
  })
  await recordAuditEvent(ctx.database().pool, {
    ...operatorOf(organization.id),
    action: 'webhook_source.tested',
    target: { kind: 'webhook_source', id, name },
    changes: [{ field: 'delivery_id', old: null, new: delivery.id }],
  })
  const isAccepted = delivery.outcome === 'accepted'
  const answer = delivery.answer === null ? '' : `It answered ${JSON.stringify(delivery.answer)}.\n`
  return {
    json: delivery,
    text: (terminal) =>
      `${paint(terminal, isAccepted ? 'green' : 'red', isAccepted ? 'Accepted.' : 'Not accepted.')} ${describe(name, delivery)}\n${answer}`,
    exitStatus: isAccepted ? 0 : 1,
  }
}

function describe(name: string, { status, reason, duration_ms }: DeliveryOut): string {
  const took = duration_ms === null ? '' : ` after ${showDuration(duration_ms)}`
  return reason === null
    ? `${name} answered with status ${status}${took}.`
    : `${name}: ${reason}${took && ` (${took.trim()})`}`
}
