import { type ApiKeyOut, countCodePoints, isName, SCOPES, type Scope, UUID_PATTERN } from '@workflow-service/contract'
import {
  ApiKeyExistsError,
  createApiKey,
  issueApiKey,
  listApiKeys,
  operatorOf,
  prefixOfApiKey,
  revokeApiKey,
} from '@workflow-service/database'
import { type CommandResult, listResult } from '../command-result.ts'
import type { OrganizationContext } from '../cli-context.ts'
import { CliError, UsageError } from '../cli-error.ts'
import { type Column, paint, showTime, timeColumn } from '../terminal.ts'

interface CreateOptions {
  name?: string
  scopes: Scope[]
  expires?: Date
}

export async function create(
  { db, organization }: OrganizationContext,
  given: string | undefined,
  options: CreateOptions,
): Promise<CommandResult> {
  if (given !== undefined && options.name !== undefined) {
    throw new UsageError(`The key is named twice: ${options.name} by --name, and ${given}. Give one name.`)
  }
  const { key, prefix } = createApiKey()
  const name = given ?? options.name ?? prefix
  if (/\p{Cc}/u.test(name)) {
    throw new UsageError('The name of a key must be one line, without tabs and other control characters.')
  }
  if (name === '' || !isName(name) || countCodePoints(name) > 200) {
    throw new UsageError('The name of a key must have 1 to 200 characters, one of them visible.')
  }
  const newKey = { name, key, scopes: options.scopes, expiresAt: options.expires ?? null }
  const { apiKey } = await issueApiKey(db, newKey, operatorOf(organization.id)).catch((error: unknown) => {
    if (!(error instanceof ApiKeyExistsError)) throw error
    throw new CliError(`${organization.name} already has a key named ${name} (it may be revoked). Choose another name.`)
  })
  return {
    json: { ...toJson(apiKey), key, organization_id: organization.id },
    text: (terminal) =>
      `${paint(terminal, 'bold', key)}\n${paint(terminal, 'dim', `Shown only this once. Name: ${name}; organization: ${organization.name}; scopes: ${apiKey.scopes.join(', ')}; ${apiKey.expires_at ? `expires ${showTime(apiKey.expires_at)} UTC` : 'does not expire'}.`)}\n`,
  }
}

export async function list({ db, organization }: OrganizationContext): Promise<CommandResult> {
  const keys = await listApiKeys(db, organization.id)
  return listResult(
    keys.toReversed(),
    COLUMNS,
    `${organization.name} has no API keys. Create one with wf keys create.`,
    toJson,
  )
}

const COLUMNS: readonly Column<ApiKeyOut>[] = [
  { title: 'NAME', value: ({ name }) => name, cut: 'name' },
  { title: 'STATE', value: stateOf, colour: (key) => (stateOf(key) === 'active' ? 'green' : 'dim') },
  { title: 'PREFIX', value: ({ prefix }) => prefix },
  {
    title: 'SCOPES',
    value: ({ scopes }) => scopes.join(', '),
    shortValue: ({ scopes }) => (scopes.length === SCOPES.length ? 'all' : scopes.join()),
  },
  timeColumn('CREATED', (key) => key.created_at),
  timeColumn('LAST USED', (key) => key.last_used_at),
  {
    title: 'EXPIRES',
    value: (key) => showTime(key.expires_at),
    shortValue: (key) => showTime(key.expires_at).slice(0, 10),
  },
]

export async function revoke({ db, organization }: OrganizationContext, text: string): Promise<CommandResult> {
  const key = await revokeApiKey(db, keyReference(text), operatorOf(organization.id))
  if (!key) throw new CliError(`${organization.name} has no such key. List its keys with wf keys list.`)
  return {
    json: toJson(key),
    text: () => `${key.name} (${key.prefix}) is revoked. Every gateway rejects it within 5 seconds.\n`,
  }
}

function keyReference(text: string): { id: string } | { prefix: string } | { name: string } {
  const prefix = prefixOfApiKey(text)
  if (prefix !== undefined) return { prefix }
  if (UUID_PATTERN.test(text)) return { id: text.toLowerCase() }
  return /^wfk_[0-9A-Za-z]{8}$/.test(text) ? { prefix: text } : { name: text }
}

function stateOf({ revoked_at: revokedAt, expires_at: expiresAt }: ApiKeyOut): string {
  if (revokedAt !== null) return 'revoked'
  return expiresAt !== null && new Date(expiresAt) <= new Date() ? 'expired' : 'active'
}

function toJson({ created_by: _createdBy, ...key }: ApiKeyOut): object {
  return key
}
