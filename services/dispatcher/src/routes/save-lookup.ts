import { type LookupIn, LOOKUPS_MAX, LOOKUPS_MAX_BYTES, type LookupTool } from '@workflow-service/contract'
import { findStoredLookup, saveLookup, type StoredLookup } from '@workflow-service/database'
import { ApiError, type OperationResponse } from '@workflow-service/service-kit'
import { createRedactor } from '../deliveries/redact.ts'
import type { DispatcherContext } from '../dispatcher-context.ts'
import { lookupSender } from '../lookups/call-lookup.ts'
import { readServerTools } from '../lookups/read-server-tools.ts'
import { isSameLookup, readHeaderValue } from '../lookups/stored-lookup.ts'
import { assertSecretMayTravel, encryptGivenSecret } from '../stored-secrets.ts'
import type { CallOf, InternalHandlers } from './internal-handlers.ts'
import { readActor } from './read-actor.ts'
import { orRefused, refusalOf, withQuota } from './save-refusals.ts'

/**
 * Saves a look-up. Nothing is sent, except that a server of the Model Context Protocol is asked for its tools. If
 * another save was written meanwhile, or since the version that was edited, this one fails with 409 `source_changed`,
 * unless both have the same values.
 */
export function saveLookupHandler(ctx: DispatcherContext): InternalHandlers['saveLookup'] {
  return async (request) => {
    const { params, query, body: input } = request
    const stored = await findStoredLookup(ctx.db, params.organization_id, params.lookup_id)
    if (!stored && (query.version ?? 0) > 0) throw refusalOf('id_taken', 'look-up')
    if (query.version !== undefined && query.version !== (stored?.lookup.version ?? 0))
      return responseToLostSave(ctx, input, stored, changed())
    const value = newHeaderValue(input, stored)
    // An absent value keeps the stored one, so a server is asked with that.
    const secret = value === undefined ? readHeaderValue(ctx, stored) : value
    const tools = input.kind === 'mcp' ? await readTools(ctx, request, secret) : input.tools
    return await write(ctx, request, stored, { value, tools })
  }
}

/**
 * Returns the value of the header that is given; undefined keeps the stored one, null removes it.
 * @throws ApiError 422 on `header_value`
 */
function newHeaderValue(input: LookupIn, stored: StoredLookup | undefined): string | null | undefined {
  const { header_name: headerName = null, header_value: value, url } = input
  if (headerName === null) return null
  if (stored?.headerValue && value === undefined)
    assertSecretMayTravel({ secret: 'header_value', url: 'url' }, stored.lookup.url, url)
  return value
}

function readTools(
  ctx: DispatcherContext,
  { params, body: input, requestId, trace }: CallOf<'saveLookup'>,
  secret: string | null,
): Promise<LookupTool[]> {
  const lookup = { id: params.lookup_id, header_name: input.header_name ?? null }
  const send = lookupSender(ctx, { lookup, secret, requestId, trace })
  return readServerTools(send, input, createRedactor([secret]))
}

async function write(
  ctx: DispatcherContext,
  request: CallOf<'saveLookup'>,
  stored: StoredLookup | undefined,
  { value, tools }: { readonly value: string | null | undefined; readonly tools: LookupTool[] },
): Promise<OperationResponse> {
  const { organization_id: organizationId, lookup_id: lookupId } = request.params
  const { header_value: _value, ...values } = request.body
  const headerValue = encryptGivenSecret(ctx.secrets, { organizationId, id: lookupId }, value)
  const actor = withQuota(readActor(organizationId, request), 'lookups', LOOKUPS_MAX)
  const by = withQuota(actor, 'lookup_bytes', LOOKUPS_MAX_BYTES)
  const change = { ...values, headerValue, tools, version: stored?.lookup.version ?? 0 }
  const saved = await orRefused(
    saveLookup(ctx.db, organizationId, lookupId, change, by),
    `There can be at most ${LOOKUPS_MAX} look-ups, whose tools have ${LOOKUPS_MAX_BYTES / 1_048_576} MiB in all. Delete what is not needed.`,
  )
  if (saved.kind !== 'saved') {
    const refusal = saved.kind === 'changed_meanwhile' ? changed() : refusalOf(saved.kind, 'look-up')
    return responseToLostSave(ctx, request.body, await findStoredLookup(ctx.db, organizationId, lookupId), refusal)
  }
  ctx.changeNotices.add(organizationId, 'lookups')
  return { status: stored ? 200 : 201, body: saved.lookup }
}

/** Answers 200 if the save that won has the same values, as for a repeated call. */
function responseToLostSave(
  ctx: DispatcherContext,
  input: LookupIn,
  winner: StoredLookup | undefined,
  refusal: ApiError,
): OperationResponse {
  if (winner && isSameLookup(ctx, winner, input)) return { status: 200, body: winner.lookup }
  throw refusal
}

function changed(): ApiError {
  return new ApiError(
    'source_changed',
    'Another save of this look-up was written meanwhile. Read it, and save again if your change still applies.',
  )
}
