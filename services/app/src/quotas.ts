import type { LimitedByQuotas, QuotaExceededError, QuotaKind } from '@workflow-service/database'
import { ApiError } from '@workflow-service/service-kit'
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

/** The setting of each kind, and what it counts, in the plural. The dispatcher checks the quotas of what it saves. */
const QUOTAS: Readonly<
  Record<Exclude<QuotaKind, 'webhook_sources' | 'lookups' | 'lookup_bytes'>, readonly [QuotaSetting, string]>
> = {
  workflows: ['MAX_WORKFLOWS', 'workflows'],
  triggers: ['MAX_TRIGGERS_PER_WORKFLOW', 'triggers in this workflow'],
  files: ['MAX_FILES_PER_WORKFLOW', 'files in this workflow'],
  file_bytes: ['MAX_FILE_MIB', 'MiB of files'],
  empty_sessions: ['MAX_EMPTY_SESSIONS', 'open sessions without a start'],
  api_keys: ['MAX_API_KEYS', 'API keys'],
  users: ['MAX_USERS', 'people'],
}

/** Returns the most that an organization may have of each kind. */
export function toLimits(quotas: Quotas): Required<LimitedByQuotas>['quotas'] {
  const limits = Object.entries(QUOTAS).map(([kind, [setting]]) => [kind, quotas[setting]])
  return { ...Object.fromEntries(limits), file_bytes: quotas.MAX_FILE_MIB * MIB }
}

/** Creates a 409 `quota_exceeded`. */
export function quotaExceeded(quotas: Quotas, { kind }: QuotaExceededError): ApiError {
  const [setting, what] = QUOTAS[kind as keyof typeof QUOTAS]
  return new ApiError(
    'quota_exceeded',
    `There can be at most ${quotas[setting].toLocaleString('en')} ${what}. Delete some that are not needed, or ask the operator to raise ${setting}.`,
  )
}
