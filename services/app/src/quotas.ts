import type { AppOperationId } from '@workflow-service/contract'
import type { QuotaCheck, QuotaExceededError, QuotaKind, SavedThing } from '@workflow-service/database'
import { ApiError } from '@workflow-service/service-kit'
import type { Principal, Visitor } from './auth/principal.ts'
import { Type } from '@workflow-service/contract/type'

const MIB = 2 ** 20

function quotaSetting(what: string, value: number) {
  return Type.Integer({
    minimum: 1,
    maximum: 10_000_000,
    default: value,
    description: `Maximum ${what}. Manifests of operators may exceed it.`,
    examples: [value],
  })
}

export const quotaSettings = {
  MAX_WORKFLOWS: quotaSetting('workflows of an organization', 1_000),
  MAX_TRIGGERS_PER_WORKFLOW: quotaSetting('triggers of a workflow', 100),
  MAX_FILES_PER_WORKFLOW: quotaSetting('files of a workflow', 200),
  MAX_FILE_MIB: quotaSetting('size of all files of an organization in MiB', 100),
  MAX_EMPTY_SESSIONS: quotaSetting('open sessions without a start of an organization', 1_000),
  MAX_API_KEYS: quotaSetting('API keys of an organization that are not revoked', 100),
  MAX_USERS: quotaSetting('users of an organization', 5_000),
}

type QuotaSetting = keyof typeof quotaSettings

/** The configured quotas. */
export type Quotas = Readonly<Record<QuotaSetting, number>>

interface Quota {
  readonly kind: QuotaKind
  readonly setting: QuotaSetting
  /** For people, in the plural. */
  readonly what: string
}

const WORKFLOWS: Quota = { kind: 'workflows', setting: 'MAX_WORKFLOWS', what: 'workflows' }
const FILES: Quota = { kind: 'files', setting: 'MAX_FILES_PER_WORKFLOW', what: 'files in this workflow' }
const FILE_BYTES: Quota = { kind: 'file_bytes', setting: 'MAX_FILE_MIB', what: 'MiB of files' }

/** The quotas of the operations that create something. The dispatcher creates webhook sources, and checks theirs. */
export const QUOTAS: { readonly [Id in AppOperationId]?: readonly Quota[] } = {
  createWorkflow: [WORKFLOWS],
  duplicateWorkflow: [WORKFLOWS, FILE_BYTES],
  saveTrigger: [{ kind: 'triggers', setting: 'MAX_TRIGGERS_PER_WORKFLOW', what: 'triggers in this workflow' }],
  saveFile: [FILES, FILE_BYTES],
  restoreWorkflowVersion: [FILE_BYTES],
  createSession: [{ kind: 'empty_sessions', setting: 'MAX_EMPTY_SESSIONS', what: 'open sessions without a start' }],
  createApiKey: [{ kind: 'api_keys', setting: 'MAX_API_KEYS', what: 'API keys' }],
  createUser: [{ kind: 'users', setting: 'MAX_USERS', what: 'people' }],
}

/** The parts of a request that name what it saves. */
interface SavingRequest {
  readonly principal: Visitor | Principal
  readonly params?: unknown
  readonly body?: unknown
}

/** Returns the quotas that limit a request. What exists may always be changed, unless it grows. */
export function quotasOf(quotas: Quotas, operationId: AppOperationId, request: SavingRequest): readonly QuotaCheck[] {
  return (QUOTAS[operationId] ?? []).map(({ kind, setting }) => {
    const isSize = kind === 'file_bytes'
    return { kind, thing: toSavedThing(request, isSize), max: isSize ? quotas[setting] * MIB : quotas[setting] }
  })
}

/** Creates a 409 `quota_exceeded`. */
export function quotaExceeded(quotas: Quotas, operationId: AppOperationId, { kind }: QuotaExceededError): ApiError {
  const { setting, what } = QUOTAS[operationId]!.find((quota) => quota.kind === kind)!
  return new ApiError(
    'quota_exceeded',
    `There can be at most ${quotas[setting].toLocaleString('en')} ${what}. Delete some that are not needed, or ask the operator to raise ${setting}.`,
  )
}

function toSavedThing({ principal, params = {}, body }: SavingRequest, isSize: boolean): SavedThing {
  const { organizationId } = principal as Principal
  const { workflow_id: workflowId, ...ids } = params as Record<string, string>
  const { id, content } = body as { id?: string; content?: string }
  // The id of what is saved is in the body of a POST, and the last one of a PUT's path.
  const savedId = id ?? Object.values(ids)[0] ?? ''
  return {
    organizationId,
    id: savedId,
    ...(workflowId && { workflowId }),
    ...(isSize && content !== undefined && { bytes: Buffer.byteLength(content) }),
  }
}
