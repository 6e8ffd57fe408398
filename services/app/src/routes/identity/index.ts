import type { AppServiceContext } from '../../app-service-context.ts'
import type { AppHandlers } from '../app-handlers.ts'
import { meHandlers } from './me.ts'
import { oidcHandlers } from './oidc.ts'
import { organizationHandlers } from './organization.ts'
import { signInHandlers } from './sign-in.ts'
import { userHandlers } from './users.ts'

/** Handlers for sign-in, the person, users, the organization and the audit log. */
export function identityHandlers(ctx: AppServiceContext) {
  return {
    ...signInHandlers(ctx),
    ...oidcHandlers(ctx),
    ...meHandlers(ctx),
    ...userHandlers(ctx),
    ...organizationHandlers(ctx),
  } satisfies Partial<AppHandlers>
}
