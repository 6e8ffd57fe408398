import { isDeepStrictEqual } from 'node:util'
import type { WebhookSourceIn, WebhookSourceSaveQuery } from '@workflow-service/contract'
import {
  findSaveTarget,
  type SaveTarget,
  saveWebhookSource,
  type StoredWebhookSource,
  type WebhookSource,
} from '@workflow-service/database'
import { ApiError, notFound } from '@workflow-service/service-kit'
import type { AppContext } from '../app-context.ts'
import type { OperationAnswer, OperationHandlers } from '../mount-operations.ts'
import { openSecret } from '../open-secret.ts'
import { toWebhookSourceOut } from '../to-wire.ts'
import { validateSource } from '../validate-source.ts'
import { verifySource } from '../verify-source.ts'

interface Save {
  organizationId: string
  sourceId: string
  entered: WebhookSourceIn
  requestId: string
}

/**
 * `PUT …/webhook-sources/{s}`: checks, sends exactly one verification request, and saves whole when a 2xx came in time.
 * A save that another one overtook is told so (409 `source_changed`), unless both wanted the same.
 */
export function saveSource(ctx: AppContext): OperationHandlers['saveWebhookSource'] {
  return async ({ params, query, body, bodyText, requestId }) => {
    const entered = validateSource(body, bodyText, ctx.config.allowedSubnets)
    const save = { organizationId: params.organization_id, sourceId: params.source_id, entered, requestId }
    const stored = readTarget(await findTarget(ctx, save))
    // Absent keeps what is stored: then the stored secret is the one as entered, and the verification carries it.
    const secret =
      entered.signing_secret === undefined ? stored && openSecret(ctx.secrets, stored) : entered.signing_secret
    const mode = query.verify ?? 'always'
    if (stored && mode !== 'always' && isUnchanged(ctx, stored, entered) && (mode === 'never' || stored.verifiedAt)) {
      return { status: 200, body: toWebhookSourceOut(stored) }
    }
    if (mode === 'never') warnOfUnverified(ctx, save)
    else await verify(ctx, save, secret)
    return await write(ctx, save, stored, mode)
  }
}

async function verify(ctx: AppContext, save: Save, signingSecret: string | null): Promise<void> {
  const { delivery, fault } = await verifySource(ctx, {
    organizationId: save.organizationId,
    sourceId: save.sourceId,
    targetUrl: save.entered.endpoint_url,
    signingSecret,
    bodyExample: save.entered.example_request_body,
    requestId: save.requestId,
  })
  if (!fault) return
  throw new ApiError('verification_failed', `${fault.message} Nothing was saved.`, {
    extra: { ...fault.extra, delivery_id: delivery.id },
  })
}

async function write(
  ctx: AppContext,
  save: Save,
  stored: StoredWebhookSource | null,
  mode: NonNullable<WebhookSourceSaveQuery['verify']>,
): Promise<OperationAnswer> {
  const { organizationId, sourceId, entered } = save
  const isVerified = mode !== 'never'
  const saved = await saveWebhookSource(
    ctx.db,
    organizationId,
    sourceId,
    {
      name: entered.name,
      description: entered.description,
      endpointUrl: entered.endpoint_url,
      signingSecret: seal(ctx, save),
      exampleRequestBody: JSON.stringify(entered.example_request_body),
      isVerified,
    },
    stored?.version ?? null,
  )
  switch (saved.kind) {
    case 'saved':
      return answer(ctx, save, saved.source, stored === null)
    case 'name_taken':
      throw nameTaken()
    case 'changed_meanwhile':
      return await afterOvertaken(ctx, save, isVerified)
    default:
      return saved satisfies never
  }
}

/** Undefined leaves what is stored, null removes it. */
function seal(ctx: AppContext, { organizationId, sourceId, entered }: Save): Buffer | null | undefined {
  const { signing_secret: secret } = entered
  return typeof secret === 'string' ? ctx.secrets.encrypt({ organizationId, sourceId }, secret) : secret
}

/** The winner stands whole. Where it is just what was asked for here, as for a repeated call, there is nothing to say. */
async function afterOvertaken(ctx: AppContext, save: Save, isVerified: boolean): Promise<OperationAnswer> {
  const winner = readTarget(await findTarget(ctx, save))
  if (winner && isUnchanged(ctx, winner, save.entered) && (winner.verifiedAt !== null || !isVerified)) {
    return { status: 200, body: toWebhookSourceOut(winner) }
  }
  throw new ApiError(
    'source_changed',
    'Another change of this webhook source was saved meanwhile, and nothing of this one was. Look at it, and save again if it still applies.',
  )
}

function answer(ctx: AppContext, save: Save, source: WebhookSource, isNew: boolean): OperationAnswer {
  ctx.logger.info(
    { request_id: save.requestId, organization_id: save.organizationId, source_id: save.sourceId, is_new: isNew },
    'webhook source saved',
  )
  return { status: isNew ? 201 : 200, body: toWebhookSourceOut(source) }
}

function warnOfUnverified(ctx: AppContext, save: Save): void {
  ctx.logger.warn(
    { request_id: save.requestId, organization_id: save.organizationId, source_id: save.sourceId },
    'webhook source recorded without verification, as the caller asked (verify=never)',
  )
}

function findTarget(ctx: AppContext, { organizationId, sourceId, entered }: Save): Promise<SaveTarget> {
  return findSaveTarget(ctx.db, organizationId, sourceId, entered.name)
}

/** What the save would replace; null when it is new. */
function readTarget(target: SaveTarget): StoredWebhookSource | null {
  switch (target.kind) {
    case 'new':
      return null
    case 'stored':
      return target.source
    case 'no_organization':
      throw notFound('Organization')
    case 'name_taken':
      throw nameTaken()
    case 'id_taken':
      throw new ApiError(
        'id_taken',
        'This id belongs to a webhook source that was deleted, or to another organization: choose a new one.',
      )
    default:
      return target satisfies never
  }
}

function nameTaken(): ApiError {
  return new ApiError(
    'name_taken',
    'Another webhook source of the organization has this name (case does not matter): choose another.',
  )
}

function isUnchanged(ctx: AppContext, stored: StoredWebhookSource, entered: WebhookSourceIn): boolean {
  return (
    stored.name === entered.name &&
    stored.description === entered.description &&
    stored.endpointUrl === entered.endpoint_url &&
    isDeepStrictEqual(stored.exampleRequestBody, JSON.parse(JSON.stringify(entered.example_request_body))) &&
    isSecretUnchanged(ctx, stored, entered.signing_secret)
  )
}

function isSecretUnchanged(ctx: AppContext, stored: StoredWebhookSource, entered: string | null | undefined): boolean {
  if (entered === undefined) return true
  try {
    return openSecret(ctx.secrets, stored) === entered
  } catch {
    // What cannot be read is replaced by what was entered.
    return false
  }
}
