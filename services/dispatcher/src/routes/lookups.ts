import { isDeepStrictEqual } from 'node:util'
import {
  findJsonObjectErrors,
  findLookupErrors,
  type LookupIn,
  LOOKUP_ARGUMENTS_MAX_BYTES,
  LOOKUPS_MAX,
  LOOKUPS_MAX_BYTES,
  type LookupTool,
  truncateText,
} from '@workflow-service/contract'
import {
  findStoredLookup,
  isOrganizationSuspended,
  recordAuditEvent,
  saveLookup,
  type StoredLookup,
} from '@workflow-service/database'
import { ApiError, invalidFields, type OperationResult, orNotFound, type Rule } from '@workflow-service/service-kit'
import { createRedactor, type Redact } from '../deliveries/redact.ts'
import type { DispatcherContext } from '../dispatcher-context.ts'
import { inSlot } from '../in-slot.ts'
import { callLookup, lookupSender } from '../lookups/call-lookup.ts'
import type { SendLookup } from '../lookups/lookup-answer.ts'
import { listMcpTools, McpError } from '../lookups/mcp-client.ts'
import { checkUrl } from '../outbound/check-url.ts'
import type { Subnets } from '../outbound/parse-subnets.ts'
import { assertSecretMayTravel, decryptStoredSecret, encryptGivenSecret } from '../sources/signing-secret.ts'
import type { CallOf, InternalHandlers } from './internal-handlers.ts'
import { readActor } from './read-actor.ts'
import { refusalOf, withinQuota, withQuota } from './save-refusals.ts'

/** Characters of a tool's description, which a server gives. */
const DESCRIPTION_MAX_LENGTH = 1_000
const SCHEMA_MAX_BYTES = 16 * 1024
/** Names in the error for a tool that the server does not have. */
const NAMED_TOOLS = 50

/** Creates the checks of a save beyond its schema. */
export function validateLookup(allowed: Subnets): Rule<LookupIn, void> {
  return (input, { violations }) => {
    if (violations.length > 0) return []
    const lookup = input as LookupIn
    const check = checkUrl(lookup.url, allowed)
    if (!check.isAllowed) return [{ field: 'url', code: check.code, message: check.message }]
    const hasQuery = lookup.kind === 'http' && check.url.search !== ''
    const message = hasQuery ? 'The URL must have no query: the tools have it' : 'The URL must have no fragment'
    const hasMore = hasQuery || check.url.hash !== ''
    const extra = hasMore ? [{ field: 'url', code: 'url_parsing' as const, message }] : []
    return [...extra, ...findLookupErrors(lookup)]
  }
}

/** Saves a look-up. Nothing is sent, except that a server of the Model Context Protocol is asked for its tools. */
export function saveOneLookup(ctx: DispatcherContext): InternalHandlers['saveLookup'] {
  return async (request) => {
    const { params, query, body: input, requestId, trace } = request
    const { organization_id: organizationId, lookup_id: lookupId } = params
    const stored = await findStoredLookup(ctx.db, organizationId, lookupId)
    const version = stored?.lookup.version ?? 0
    if (!stored && (query.version ?? 0) > 0) throw refusalOf('id_taken', 'look-up')
    if (query.version !== undefined && query.version !== version) {
      if (stored && isSame(ctx, stored, input)) return { status: 200, body: stored.lookup }
      throw changed()
    }
    const { header_value: given, ...values } = input
    const { kind, url, header_name: headerName = null } = values
    if (stored?.headerValue && headerName !== null && given === undefined)
      assertSecretMayTravel({ secret: 'header_value', url: 'url' }, stored.lookup.url, url)
    const value = headerName === null ? null : given
    const keptOrGiven = value === undefined ? readHeaderValue(ctx, stored) : value
    const lookup = { id: lookupId, header_name: headerName }
    const send = lookupSender(ctx, { lookup, secret: keptOrGiven, requestId, trace })
    const redact = createRedactor([keptOrGiven])
    const tools = kind === 'mcp' ? describeTools(await listTools(send, url, redact), input.tools, redact) : input.tools
    const headerValue = encryptGivenSecret(ctx.secrets, { organizationId, id: lookupId }, value)
    const actor = withQuota(readActor(organizationId, request), 'lookups', LOOKUPS_MAX)
    const by = withQuota(actor, 'lookup_bytes', LOOKUPS_MAX_BYTES)
    const change = { ...values, headerValue, tools, version }
    const saved = await withinQuota(
      saveLookup(ctx.db, organizationId, lookupId, change, by),
      `There can be at most ${LOOKUPS_MAX} look-ups, whose tools have ${LOOKUPS_MAX_BYTES / 1_048_576} MiB in all. Delete what is not needed.`,
    )
    if (saved.kind === 'changed_meanwhile') throw changed()
    if (saved.kind !== 'saved') throw refusalOf(saved.kind, 'look-up')
    ctx.changeNotices.add(organizationId, 'lookups')
    return { status: stored ? 200 : 201, body: saved.lookup }
  }
}

/** Calls a tool for a run, or for a person who tries it, which has an audit event. */
export function callOneLookup(ctx: DispatcherContext) {
  const call = callInSlot(ctx)
  return (request: CallOf<'callLookup'>): Promise<OperationResult> =>
    inSlot(ctx, `lookup:${request.params.lookup_id}`, () => call(request))
}

function callInSlot(ctx: DispatcherContext) {
  return async (request: CallOf<'callLookup'>): Promise<OperationResult> => {
    const { params, body, requestId, trace } = request
    const { organization_id: organizationId, lookup_id: lookupId } = params
    if (await isOrganizationSuspended(ctx.db, organizationId)) {
      throw new ApiError('organization_suspended', 'The organization is suspended.')
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
}

type ServerTools = Awaited<ReturnType<typeof listMcpTools>>

/** @throws ApiError 422 on `url` if the server does not list its tools. */
async function listTools(send: SendLookup, url: string, redact: Redact): Promise<ServerTools> {
  try {
    return await listMcpTools(send, url)
  } catch (error) {
    if (!(error instanceof McpError)) throw error
    throw invalidFields([{ field: 'url', code: 'value_error', message: redact(error.message) }])
  }
}

/**
 * The named tools as the server describes them now: a later change of the server does not reach the model.
 * @throws ApiError 422 for a tool that the server does not have, or that it does not call read-only.
 */
function describeTools(tools: ServerTools, wanted: readonly LookupTool[], redact: Redact): LookupTool[] {
  return wanted.map(({ name }, index) => {
    const refuse = (message: string): ApiError =>
      invalidFields([{ field: `tools.${index}.name`, code: 'value_error', message }])
    const tool = tools.find((each) => each.name === name)
    if (!tool) {
      const names = tools.slice(0, NAMED_TOOLS).map((each) => truncateText(each.name, 128))
      throw refuse(`is no tool of the server. Its tools are: ${redact(names.join(', ')) || 'none'}`)
    }
    const { readOnlyHint, destructiveHint } = tool.annotations ?? {}
    // Without `readOnlyHint`, a tool may change something (Model Context Protocol, `ToolAnnotations`).
    if (readOnlyHint !== true || destructiveHint === true) {
      throw refuse('may change something: look-ups call only tools whose annotations have "readOnlyHint": true')
    }
    const parameters: Record<string, unknown> = { ...tool.inputSchema }
    delete parameters['$schema']
    const isTooLarge = Buffer.byteLength(JSON.stringify(parameters)) > SCHEMA_MAX_BYTES
    if (isTooLarge || findJsonObjectErrors(parameters, 'parameters').length > 0) {
      throw refuse(`has arguments whose schema has more than ${SCHEMA_MAX_BYTES} bytes, or is too deep`)
    }
    const given = truncateText((tool.description ?? '').toWellFormed().replaceAll('\0', ''), DESCRIPTION_MAX_LENGTH)
    const description = truncateText(redact(given), DESCRIPTION_MAX_LENGTH)
    return { name, description, parameters: mapTexts(parameters, redact) as Record<string, unknown> }
  })
}

/** Maps the texts in a value of JSON, also the names of fields. */
function mapTexts(value: unknown, map: (text: string) => string): unknown {
  if (typeof value === 'string') return map(value)
  if (Array.isArray(value)) return value.map((item) => mapTexts(item, map))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, of]) => [map(name), mapTexts(of, map)]))
}

function readHeaderValue(ctx: DispatcherContext, stored: StoredLookup | undefined): string | null {
  if (!stored) return null
  const owner = { organizationId: stored.lookup.organization_id, id: stored.lookup.id }
  return decryptStoredSecret(ctx.secrets, owner, stored.headerValue, 'header_value')
}

function namesOf(tools: readonly LookupTool[]): string[] {
  return tools.map(({ name }) => name)
}

/** Whether a save that is repeated would change nothing. */
function isSame(ctx: DispatcherContext, stored: StoredLookup, input: LookupIn): boolean {
  const { lookup } = stored
  const { header_name: headerName = null, header_value: value } = input
  return (
    lookup.name === input.name &&
    lookup.kind === input.kind &&
    lookup.url === input.url &&
    lookup.header_name === headerName &&
    (value === undefined || readHeaderValue(ctx, stored) === value) &&
    (lookup.kind === 'http'
      ? isDeepStrictEqual(lookup.tools, JSON.parse(JSON.stringify(input.tools)))
      : isDeepStrictEqual(namesOf(lookup.tools), namesOf(input.tools)))
  )
}

function changed(): ApiError {
  return new ApiError(
    'source_changed',
    'Another save of this look-up was written meanwhile. Read it, and save again if your change still applies.',
  )
}
