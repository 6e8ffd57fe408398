import { UUID_PATTERN } from '@workflow-service/contract'
import {
  hasWebhookSourceLog,
  listWebhookSources,
  normalizedName,
  type OrganizationName,
} from '@workflow-service/database'
import type { CliContext } from './cli-context.ts'
import { Refusal } from './refusal.ts'

/** A webhook source as somebody named it; a deleted one has no name any more. */
export interface FoundSource {
  readonly id: string
  readonly name: string
}

/**
 * The organization's source of that name, ignoring case, or of that id; with `includeDeleted` also a deleted one that has
 * a log. @throws Refusal
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
  const names = sources.map(({ name }) => `  ${name}`).join('\n')
  throw new Refusal(
    `${organization.name} has no webhook source ${isId ? text : JSON.stringify(text)}.${names && ` It has:\n${names}`}`,
  )
}
