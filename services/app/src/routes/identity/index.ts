import type { AppContext } from '../../app-context.ts'
import type { AppHandlers, AppRules } from '../app-handlers.ts'
import { getMe } from './me.ts'

/** Handlers for sign-in, the person, users, the organization and the audit log. */
export function identityHandlers(ctx: AppContext) {
  return {
    getMe: getMe(ctx),
  } satisfies Partial<AppHandlers>
}

export const identityRules = {} satisfies AppRules
