import type { DeliveryOut } from '@workflow-service/contract'
import {
  findWebhookSource,
  listWebhookSources,
  operatorOf,
  recordAuditEvent,
  type WebhookSource,
} from '@workflow-service/database'
import type { Command } from 'commander'
import { addCommand, type CommandResult, type Run } from '../cli-command.ts'
import type { CliContext } from '../cli-context.ts'
import { findOrganization, withOrganization } from '../find-organization.ts'
import { findSource } from '../find-source.ts'
import { readJsonObject } from '../read-json.ts'
import { paint, renderTable, showDuration, showTime } from '../terminal.ts'

/** `wf sources list|test|send` */
export function addSourcesCommands(program: Command, run: Run): void {
  const sources = program.command('sources').description('List and test webhook sources, and send a sample.')
  withOrganization(addCommand(sources, 'list', 'List the webhook sources by name. Secrets are never shown.')).action(
    run(list),
  )
  withOrganization(addCommand(sources, 'test', 'Send the verification request again and show the result.'))
    .argument('<source>', 'its name or id')
    .action(run(test))
  withOrganization(
    addCommand(sources, 'send', 'Send one payload to a webhook source, as a run would, and show the result.'),
  )
    .argument('<source>', 'its name or id')
    .option(
      '--payload <file>',
      'the payload, as a JSON object; - is standard input (default: the example of the source)',
    )
    .addHelpText('after', SEND_HELP)
    .action(run(send))
}

const SEND_HELP = `
The dispatcher sends it, with everything that it does for a run: it compares it with the example, signs it, checks the address, and logs it,
without a run. The endpoint cannot tell it from the payload of a run. A source that asks for approvals refuses it.

Examples:
  wf sources send "Order intake"
  echo '{"order_id": "TEST-1"}' | wf sources send "Order intake" --payload -
`

async function list(ctx: CliContext, options: { organization?: string }): Promise<CommandResult> {
  const organization = await findOrganization(ctx, options.organization)
  const sources = await listWebhookSources(ctx.database(), organization.id)
  return {
    json: sources.map(toJson),
    text: (terminal) =>
      renderTable(
        terminal,
        [
          { title: 'NAME', value: ({ name }) => name, cut: 'name' },
          { title: 'ID', value: ({ id }) => id, cut: 'id' },
          { title: 'SIGNED', value: ({ hasSigningSecret }) => (hasSigningSecret ? 'yes' : 'no') },
          {
            title: 'CONFIRMED',
            value: ({ verifiedAt }) => (verifiedAt ? showTime(verifiedAt) : 'never'),
            shortValue: ({ verifiedAt }) => (verifiedAt ? showTime(verifiedAt).slice(0, 10) : 'never'),
          },
          { title: 'ENDPOINT', value: ({ endpointUrl }) => endpointUrl },
        ],
        sources,
        `${organization.name} has no webhook sources. Create them with wf apply and a manifest.`,
      ),
  }
}

async function test(ctx: CliContext, text: string, options: { organization?: string }): Promise<CommandResult> {
  const organization = await findOrganization(ctx, options.organization)
  const source = await findSource(ctx, organization, text, { includeDeleted: false })
  const delivery = await ctx.dispatcher().testWebhookSource(organization.id, source.id)
  const isConfirmed = delivery.outcome === 'accepted'
  return {
    json: delivery,
    text: (terminal) =>
      `${paint(terminal, isConfirmed ? 'green' : 'red', isConfirmed ? 'Confirmed.' : 'Not confirmed.')} ${describe(source.name, delivery)}\n`,
    exitStatus: isConfirmed ? 0 : 1,
  }
}

async function send(
  ctx: CliContext,
  text: string,
  options: { organization?: string; payload?: string },
): Promise<CommandResult> {
  const organization = await findOrganization(ctx, options.organization)
  const { id, name } = await findSource(ctx, organization, text, { includeDeleted: false })
  const payload = await (options.payload === undefined
    ? findWebhookSource(ctx.database(), organization.id, id).then((source) => source?.exampleRequestBody ?? {})
    : readJsonObject(ctx, options.payload))
  const delivery = await ctx.dispatcher().sendPayload(organization.id, id, payload)
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

function toJson(source: WebhookSource): object {
  return {
    id: source.id,
    name: source.name,
    description: source.description,
    endpoint_url: source.endpointUrl,
    has_signing_secret: source.hasSigningSecret,
    example_request_body: source.exampleRequestBody,
    created_at: source.createdAt,
    updated_at: source.updatedAt,
    verified_at: source.verifiedAt,
  }
}
