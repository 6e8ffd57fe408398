import {
  findJsonObjectErrors,
  LOOKUP_ARGUMENTS_MAX_BYTES,
  LOOKUPS_MAX,
  LOOKUPS_MAX_BYTES,
} from '@workflow-service/contract'
import {
  findStoredLookup,
  isOrganizationSuspended,
  recordAuditEvent,
  saveLookup,
  type StoredLookup,
} from '@workflow-service/database'
import {
  ApiError,
  invalidFields,
  type OperationResponse,
  type OperationResult,
  organizationSuspended,
  orNotFound,
} from '@workflow-service/service-kit'
import { createRedactor } from '../deliveries/redact.ts'
import type { DispatcherContext } from '../dispatcher-context.ts'
import { inSlot } from '../in-slot.ts'
import { callLookup, lookupSender } from '../lookups/call-lookup.ts'
import { readServerTools } from '../lookups/read-server-tools.ts'
import { isSameLookup, readHeaderValue } from '../lookups/stored-lookup.ts'
import { assertSecretMayTravel, encryptGivenSecret } from '../stored-secrets.ts'
import type { CallOf, InternalHandlers } from './internal-handlers.ts'
import { readActor } from './read-actor.ts'
import { orRefused, refusalOf, withQuota } from './save-refusals.ts'

/** Handlers of look-ups. */
export function lookupHandlers(ctx: DispatcherContext) {
  return {
    /** Saves a look-up. Nothing is sent, except that a server of the Model Context Protocol is asked for its tools. */
    saveLookup: async (request) => {
      const { params, query, body: input, requestId, trace } = request
      const { organization_id: organizationId, lookup_id: lookupId } = params
      const stored = await findStoredLookup(ctx.db, organizationId, lookupId)
      const version = stored?.lookup.version ?? 0
      if (!stored && (query.version ?? 0) > 0) throw refusalOf('id_taken', 'look-up')
      /** Answers 200 if the save that won has the same values, as for a repeated call. */
      const responseToLostSave = (winner: StoredLookup | undefined, refusal: ApiError): OperationResponse => {
        if (winner && isSameLookup(ctx, winner, input)) return { status: 200, body: winner.lookup }
        throw refusal
      }
      if (query.version !== undefined && query.version !== version) return responseToLostSave(stored, changed())
      const { header_value: given, ...values } = input
      const { kind, url, header_name: headerName = null } = values
      if (stored?.headerValue && headerName !== null && given === undefined)
        assertSecretMayTravel({ secret: 'header_value', url: 'url' }, stored.lookup.url, url)
      const value = headerName === null ? null : given
      const keptOrGiven = value === undefined ? readHeaderValue(ctx, stored) : value
      const lookup = { id: lookupId, header_name: headerName }
      const send = lookupSender(ctx, { lookup, secret: keptOrGiven, requestId, trace })
      const redact = createRedactor([keptOrGiven])
      const tools = kind === 'mcp' ? await readServerTools(send, input, redact) : input.tools
      const headerValue = encryptGivenSecret(ctx.secrets, { organizationId, id: lookupId }, value)
      const actor = withQuota(readActor(organizationId, request), 'lookups', LOOKUPS_MAX)
      const by = withQuota(actor, 'lookup_bytes', LOOKUPS_MAX_BYTES)
      const change = { ...values, headerValue, tools, version }
      const saved = await orRefused(
        saveLookup(ctx.db, organizationId, lookupId, change, by),
        `There can be at most ${LOOKUPS_MAX} look-ups, whose tools have ${LOOKUPS_MAX_BYTES / 1_048_576} MiB in all. Delete what is not needed.`,
      )
      if (saved.kind !== 'saved') {
        const refusal = saved.kind === 'changed_meanwhile' ? changed() : refusalOf(saved.kind, 'look-up')
        return responseToLostSave(await findStoredLookup(ctx.db, organizationId, lookupId), refusal)
      }
      ctx.changeNotices.add(organizationId, 'lookups')
      return { status: stored ? 200 : 201, body: saved.lookup }
    },

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

function changed(): ApiError {
  return new ApiError(
    'source_changed',
    'Another save of this look-up was written meanwhile. Read it, and save again if your change still applies.',
  )
}
