import type { MeOut } from '@workflow-service/contract'
import { readMe } from '@workflow-service/database'
import { ApiError } from '@workflow-service/service-kit'
import type { AppContext } from '../../app-context.ts'
import type { SignedInUser } from '@workflow-service/database'
import type { AppHandlers } from '../app-handlers.ts'

/** Reads who is signed in. */
export function getMe(ctx: AppContext): AppHandlers['getMe'] {
  return async ({ principal }) => ({ status: 200, body: await toMe(ctx, principal) })
}

/** Returns the body that most operations on the person answer. */
export async function toMe(ctx: AppContext, principal: SignedInUser): Promise<MeOut> {
  const { accountId, userId, organizationId, role, name, email, confirmedUntil } = principal
  const { account, organizations } = await readMe(ctx.db, accountId)
  const organization = organizations.find(({ id }) => id === organizationId)
  // Deleted or left since the request was authorized.
  if (!account || !organization) throw new ApiError('unauthorized', 'Sign in first.')
  return {
    account: { id: accountId, email, name, has_password: account.hasPassword, has_oidc: account.hasOidc },
    user_id: userId,
    role,
    organization: { id: organizationId, name: organization.name, is_suspended: organization.isSuspended },
    organizations: organizations.map(({ id, name: organizationName, role: otherRole }) => ({
      id,
      name: organizationName,
      role: otherRole,
    })),
    confirmed_until: confirmedUntil?.toISOString() ?? null,
    api_url: ctx.config.apiUrl ?? null,
  }
}
