import { findJsonObjectErrors, LOOKUP_ARGUMENTS_MAX_BYTES } from '@workflow-service/contract'
import { findStoredLookup, isOrganizationSuspended, recordAuditEvent } from '@workflow-service/database'
import { invalidFields, type OperationResult, organizationSuspended, orNotFound } from '@workflow-service/service-kit'
import type { DispatcherContext } from '../dispatcher-context.ts'
import { inSlot } from '../in-slot.ts'
import { callLookup } from '../lookups/call-lookup.ts'
import { readHeaderValue } from '../lookups/stored-lookup.ts'
import type { CallOf, InternalHandlers } from './internal-handlers.ts'
import { readActor } from './read-actor.ts'
import { saveLookupHandler } from './save-lookup.ts'

/** Handlers of look-ups. */
export function lookupHandlers(ctx: DispatcherContext) {
  return {
    saveLookup: saveLookupHandler(ctx),

    /** Calls a tool for a run, or for a person who tries it, which has an audit event. */
    callLookup: (request: CallOf<'callLookup'>) =>
      inSlot(ctx, `lookup:${request.params.lookup_id}`, () => callInSlot(ctx, request)),
  } satisfies Partial<InternalHandlers>
}

async function callInSlot(ctx: DispatcherContext, request: CallOf<'callLookup'>): Promise<OperationResult> {
  const { params, body, requestId, trace } = request
  const { organization_id: organizationId, lookup_id: lookupId } = params
  if (await isOrganizationSuspended(ctx.db, organizationId)) {
    throw organizationSuspended()
  }
  const stored = orNotFound(await findStoredLookup(ctx.db, organizationId, lookupId), 'Look-up')
  const { lookup } = stored
  const tool = orNotFound(
    lookup.tools.find(({ name }) => name === body.tool),
    'Tool of the look-up',
  )
  // A model calls a tool without parameters with some, because some providers do not know such tools.
  const args = Object.keys(tool.parameters?.['properties'] ?? {}).length === 0 ? {} : body.arguments
  const errors = findJsonObjectErrors(args, 'arguments')
  if (errors.length > 0) throw invalidFields(errors)
  if (Buffer.byteLength(JSON.stringify(args)) > LOOKUP_ARGUMENTS_MAX_BYTES) {
    const message = `must have at most ${LOOKUP_ARGUMENTS_MAX_BYTES} bytes`
    throw invalidFields([{ field: 'arguments', code: 'too_large', message }])
  }
  const by = readActor(organizationId, request)
  if (by) {
    const target = { kind: 'lookup', id: lookupId, name: lookup.name }
    await recordAuditEvent(ctx.db.pool, { ...by, action: 'lookup.tested', target })
  }
  const secret = readHeaderValue(ctx, stored)
  const answer = await callLookup(ctx, { lookup, tool, args, secret, requestId, trace })
  const { ok, status, bytes, duration_ms } = answer
  const fields = { request_id: requestId, lookup_id: lookupId, run_id: body.run_id ?? null }
  ctx.logger.info({ ...fields, tool: tool.name, ok, status, bytes, duration_ms }, 'lookup.answered')
  return { status: 200, body: answer, headers: {} }
}
