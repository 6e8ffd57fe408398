import { isDeepStrictEqual } from 'node:util'
import type { LookupIn, LookupTool } from '@workflow-service/contract'
import type { StoredLookup } from '@workflow-service/database'
import type { DispatcherContext } from '../dispatcher-context.ts'
import { decryptStoredSecret } from '../stored-secrets.ts'

/** Decrypts the value of the look-up's header; null without one. */
export function readHeaderValue(
  ctx: Pick<DispatcherContext, 'secrets'>,
  stored: StoredLookup | undefined,
): string | null {
  if (!stored) return null
  const owner = { organizationId: stored.lookup.organization_id, id: stored.lookup.id }
  return decryptStoredSecret(ctx.secrets, owner, stored.headerValue, 'header_value')
}

/** Whether a save that is repeated would change nothing. */
export function isSameLookup(ctx: Pick<DispatcherContext, 'secrets'>, stored: StoredLookup, input: LookupIn): boolean {
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

function namesOf(tools: readonly LookupTool[]): string[] {
  return tools.map(({ name }) => name)
}
