import { isDeepStrictEqual } from 'node:util'
import type { TraceContext, WebhookSourceIn, WebhookSourceOut } from '@workflow-service/contract'
import {
  assertQuota,
  type AuditedBy,
  findSaveRefusal,
  findStoredSource,
  findWebhookSource,
  saveWebhookSource,
  saveWebhookSourceSettings,
  type StoredWebhookSource,
} from '@workflow-service/database'
import { ApiError, type OperationResponse } from '@workflow-service/service-kit'
import type { DispatcherContext } from '../dispatcher-context.ts'
import { inTurn } from '../sources/in-turn.ts'
import { assertSecretMayTravel, decryptSigningSecret, encryptGivenSecret } from '../stored-secrets.ts'
import { inVerificationSlot, verifySource } from '../sources/verify-source.ts'
import type { InternalHandlers } from './internal-handlers.ts'
import { readActor } from './read-actor.ts'
import { orRefused, refusalOf, withQuota } from './save-refusals.ts'

/** A save under way. */
interface Save {
  organizationId: string
  sourceId: string
  /** The validated body. */
  input: WebhookSourceIn
  requestId: string
  trace: TraceContext | null
  /** Whether the endpoint confirms before the source is written. */
  isVerified: boolean
  /** For the audit event, with the quota. */
  by: AuditedBy | undefined
}

/**
 * Saves a source: verifies it with one request and writes it in one statement after a 2xx answer. If another save was
 * written meanwhile, or since the version that was edited, this one fails with 409 `source_changed`, unless both have
 * the same values.
 */
export function saveSource(ctx: DispatcherContext): InternalHandlers['saveWebhookSource'] {
  return async (request) => {
    const { params, query, body: input, requestId, trace } = request
    const { organization_id: organizationId, source_id: sourceId } = params
    const mode = query.verify ?? 'always'
    const actor = readActor(organizationId, request)
    const by = withQuota(actor, 'webhook_sources', ctx.config.maxWebhookSources)
    const save: Save = { organizationId, sourceId, input, requestId, trace, isVerified: mode !== 'never', by }
    const stored = await inTurn(ctx, organizationId, () => findForSave(ctx, save, query.version))
    if (query.version !== undefined && query.version !== (stored?.source.version ?? 0))
      return responseToLostSave(ctx, save, stored)
    assertStoredSecretMayTravel(input, stored?.source)
    // An absent secret keeps the stored one, so the verification request carries that.
    const signingSecret =
      input.signing_secret === undefined ? stored && decryptSigningSecret(ctx.secrets, stored) : input.signing_secret
    if (stored && mode !== 'always' && isConfirmed(ctx, save, stored))
      return await writeSettings(ctx, save, stored.source)
    if (save.isVerified) await verify(ctx, save, signingSecret)
    else ctx.logger.warn(logFields(save), 'webhook_source.unverified')
    return await inTurn(ctx, organizationId, () => write(ctx, save, stored?.source ?? null))
  }
}

/** Checks what a save would refuse before it sends anything, except ids, names and the quota. */
export function checkSource({ db }: DispatcherContext): InternalHandlers['checkWebhookSource'] {
  return async ({ params, body }) => {
    assertStoredSecretMayTravel(body, await findWebhookSource(db, params.organization_id, params.source_id))
    return { status: 204 }
  }
}

/**
 * Returns the source that the save replaces, or null if the source is new.
 * @throws ApiError as `findStored`; 409 `quota_exceeded` for a new source, before anything is sent. Others may be saved
 *   while the endpoint answers, so `write` asks again.
 */
async function findForSave(
  ctx: DispatcherContext,
  save: Save,
  version: number | undefined,
): Promise<StoredWebhookSource | null> {
  const { organizationId, sourceId, by } = save
  // Before ids and names are compared: an edit of a source that is not there does not tell whose the id is.
  const isEdit = version !== undefined && version > 0
  if (isEdit && !(await findWebhookSource(ctx.db, organizationId, sourceId)))
    throw refusalOf('id_taken', 'webhook source')
  const stored = await findStored(ctx, save)
  // The new one is not counted yet.
  const before = withQuota(by, 'webhook_sources', ctx.config.maxWebhookSources - 1)
  if (!stored && before) await refuseAboveQuota(ctx, assertQuota(ctx.db.pool, before, 'webhook_sources'))
  return stored
}

/** @throws ApiError 422 on `signing_secret` */
function assertStoredSecretMayTravel(input: WebhookSourceIn, stored: WebhookSourceOut | undefined): void {
  if (!stored?.has_signing_secret || input.signing_secret !== undefined) return
  const fields = { secret: 'signing_secret', url: 'endpoint_url' }
  assertSecretMayTravel(fields, stored.endpoint_url, input.endpoint_url)
}

/** @throws ApiError 422 `verification_failed` if the endpoint does not confirm. */
async function verify(ctx: DispatcherContext, save: Save, signingSecret: string | null): Promise<void> {
  const { input } = save
  const request = {
    organizationId: save.organizationId,
    sourceId: save.sourceId,
    targetUrl: input.endpoint_url,
    signingSecret,
    bodyExample: input.example_request_body,
    requestId: save.requestId,
    trace: save.trace,
  }
  const { delivery, failure } = await inVerificationSlot(ctx, save.sourceId, () => verifySource(ctx, request))
  if (!failure) return
  const { message, ...reason } = failure
  throw new ApiError('verification_failed', `${message} Nothing was saved.`, {
    extra: { ...reason, delivery_id: delivery.id },
  })
}

async function write(ctx: DispatcherContext, save: Save, stored: WebhookSourceOut | null): Promise<OperationResponse> {
  const { organizationId, sourceId, input, isVerified, by } = save
  const { signing_secret: secret, ...values } = input
  const signingSecret = encryptGivenSecret(ctx.secrets, { organizationId, id: sourceId }, secret)
  const change = { ...values, signingSecret, isVerified }
  const saved = await refuseAboveQuota(ctx, saveWebhookSource(ctx.db, organizationId, sourceId, change, stored, by))
  switch (saved.kind) {
    case 'saved': {
      const isNew = stored === null
      ctx.changeNotices.add(organizationId, 'webhook_sources')
      // Another URL ends approvals, so that their runs continue.
      if (stored && stored.endpoint_url !== input.endpoint_url)
        ctx.changeNotices.add(organizationId, 'runs', 'sessions')
      ctx.logger.info({ ...logFields(save), is_new: isNew }, 'webhook_source.saved')
      return { status: isNew ? 201 : 200, body: saved.source }
    }
    case 'name_taken':
      throw refusalOf(saved.kind, 'webhook source')
    case 'changed_meanwhile':
      return responseToLostSave(ctx, save, await findStored(ctx, save))
    default:
      return saved satisfies never
  }
}

/** @throws ApiError as `orRefused` */
function refuseAboveQuota<Result>({ config }: DispatcherContext, saved: Promise<Result>): Promise<Result> {
  const most = config.maxWebhookSources.toLocaleString('en')
  return orRefused(
    saved,
    `There can be at most ${most} webhook sources. Delete some that are not needed, or ask the operator to raise MAX_WEBHOOK_SOURCES.`,
  )
}

/** Saves what the endpoint does not confirm. Writes nothing if it is saved already. */
async function writeSettings(ctx: DispatcherContext, save: Save, stored: WebhookSourceOut): Promise<OperationResponse> {
  const { organizationId, sourceId, input, by } = save
  const { approval = stored.approval } = input
  const settings = { approval, version: stored.version }
  const saved = await saveWebhookSourceSettings(ctx.db, organizationId, sourceId, settings, by)
  if (saved.kind !== 'saved') return responseToLostSave(ctx, save, await findStored(ctx, save))
  if (saved.source.version !== stored.version) ctx.changeNotices.add(organizationId, 'webhook_sources')
  return { status: 200, body: saved.source }
}

/** Answers 200 if the save that won has the same values, as for a repeated call. */
function responseToLostSave(ctx: DispatcherContext, save: Save, winner: StoredWebhookSource | null): OperationResponse {
  const { approval = winner?.source.approval } = save.input
  if (winner && approval === winner.source.approval && isConfirmed(ctx, save, winner))
    return { status: 200, body: winner.source }
  throw new ApiError(
    'source_changed',
    'Another save of this webhook source was written meanwhile, and this one was not. Read the source, and save again if your change still applies.',
  )
}

/**
 * Returns the source that the save replaces, or null if the source is new.
 * @throws ApiError if the organization does not exist, or the name or the id is taken.
 */
async function findStored(ctx: DispatcherContext, save: Save): Promise<StoredWebhookSource | null> {
  const { organizationId, sourceId, input } = save
  const refusal = await findSaveRefusal(ctx.db, organizationId, sourceId, input.name)
  if (refusal) throw refusalOf(refusal, 'webhook source')
  return (await findStoredSource(ctx.db, organizationId, sourceId)) ?? null
}

/**
 * Whether the stored source already has the values that its endpoint confirms, and is verified if the save requires it.
 */
function isConfirmed(ctx: DispatcherContext, { input, isVerified }: Save, stored: StoredWebhookSource): boolean {
  const { source } = stored
  return (
    (source.verified_at !== null || !isVerified) &&
    source.name === input.name &&
    source.description === input.description &&
    source.endpoint_url === input.endpoint_url &&
    isDeepStrictEqual(source.example_request_body, JSON.parse(JSON.stringify(input.example_request_body))) &&
    hasSecret(ctx, stored, input.signing_secret)
  )
}

function hasSecret(ctx: DispatcherContext, stored: StoredWebhookSource, secret: string | null | undefined): boolean {
  if (secret === undefined) return true
  try {
    return decryptSigningSecret(ctx.secrets, stored) === secret
  } catch {
    // A stored secret that cannot be decrypted is replaced by the given one.
    return false
  }
}

function logFields({ requestId, organizationId, sourceId }: Save): Record<string, string> {
  return { request_id: requestId, organization_id: organizationId, source_id: sourceId }
}
