import { findWebhookSource, listDeliveries, type LoggedDelivery } from '@workflow-service/database'
import type { OperatorContext } from '../cli-context.ts'
import { CliError } from '../cli-error.ts'
import type { Forwarding } from '../listen/listen.ts'
import { findSource, openOrganization } from './find.ts'
import { followDeliveries } from './follow-deliveries.ts'

/** Opens the payloads of a webhook source for `wf listen`. @throws CliError if there is no such source. */
export async function openForwarding(
  operator: OperatorContext,
  given: string,
  organizationName: string | undefined,
): Promise<Forwarding> {
  const ctx = await openOrganization(operator, organizationName)
  const { organization } = ctx
  const { id: sourceId } = await findSource(ctx, given)
  const source = await findWebhookSource(ctx.db, organization.id, sourceId)
  if (!source) throw new CliError(`${organization.name} has no webhook source ${given} any more.`)
  const query = { sourceId, kind: 'payload', limit: 1 } as const
  return {
    source: {
      id: sourceId,
      organizationId: organization.id,
      name: source.name,
      hasSigningSecret: source.has_signing_secret,
      exampleRequestBody: source.example_request_body,
    },
    payloads: async (signal) => payloadsAfter((await listDeliveries(ctx.db, organization.id, query)).rows, signal),
  }

  async function* payloadsAfter(newest: readonly LoggedDelivery[], signal: AbortSignal) {
    for await (const news of followDeliveries(ctx, query, newest, signal)) {
      for (const { id, outcome, request_body: body, request_id: requestId } of news) {
        if (outcome !== 'invalid') yield { body, copyOf: id, requestId: requestId ?? id }
      }
    }
  }
}
