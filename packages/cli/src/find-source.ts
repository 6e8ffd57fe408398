import { UUID_PATTERN } from '@workflow-service/contract'
import {
  hasWebhookSourceLog,
  listWebhookSources,
  normalizedName,
  type OrganizationName,
} from '@workflow-service/database'
import type { CliContext } from './cli-context.ts'
import { listKnown } from './choose-from.ts'
import { CliError } from './cli-error.ts'

/** A webhook source; a deleted one is named by its id. */
export interface FoundSource {
  readonly id: string
  readonly name: string
}

/**
 * Finds a source of the organization by its name, ignoring case, or by its id. With `includeDeleted`, also finds a deleted
 * one that has a log. @throws CliError
 */
export async function findSource(
  ctx: CliContext,
  organization: OrganizationName,
  text: string,
  options: { includeDeleted: boolean },
): Promise<FoundSource> {
  const sources = await listWebhookSources(ctx.database(), organization.id)
  const found = sources.find(
    ({ id, name }) => id === text.toLowerCase() || normalizedName(name) === normalizedName(text),
  )
  if (found) return { id: found.id, name: found.name }
  const isId = UUID_PATTERN.test(text)
  if (
    isId &&
    options.includeDeleted &&
    (await hasWebhookSourceLog(ctx.database(), organization.id, text.toLowerCase()))
  ) {
    return { id: text.toLowerCase(), name: `deleted source ${text}` }
  }
  const known = listKnown(
    text,
    sources.map(({ name }) => name),
  )
  throw new CliError(`${organization.name} has no webhook source ${isId ? text : JSON.stringify(text)}.${known}`)
}
