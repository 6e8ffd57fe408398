import type { AppUserOut } from '@workflow-service/contract'
import {
  type CheckUserChange,
  createUser,
  createUserLink,
  deleteUser,
  listUsers,
  saveUser,
  signUserOut,
  type UserRow,
} from '@workflow-service/database'
import { ApiError, notFound, serviceUnavailable } from '@workflow-service/service-kit'
import type { AppContext } from '../../app-context.ts'
import { assertConfirmed, type Principal } from '../../auth/principal.ts'
import type { AppHandlers } from '../app-handlers.ts'
import { BY_EMAIL, readPage } from '../paging.ts'
import { emailTaken } from './me.ts'

/** Handlers of an organization's users. */
export function userHandlers(ctx: AppContext) {
  const changed = ({ organizationId }: Principal): void => ctx.hints.add(organizationId, 'users', 'workflows')
  return {
    listUsers: async ({ principal, query }) => {
      const read = async (limit: number, afterEmail: string | undefined) =>
        (await listUsers(ctx.db, principal.organizationId, { limit, afterEmail })).map(toUserOut)
      return { body: await readPage(query, BY_EMAIL, read, ({ email }) => email) }
    },
    createUser: async (request) => {
      const { principal, body } = request
      if (body.role === 'owner') assertMayMakeOwner(principal)
      const { id, email, first_name: firstName, last_name: lastName, role } = body
      const created = await createUser(ctx.db, { id, email, firstName, lastName, role }, request)
      if (created === 'email_taken') throw emailTaken()
      if (created === 'id_taken') throw new ApiError('id_taken', 'This id is used already. Choose a new one.')
      changed(principal)
      return { body: toUserOut(created) }
    },
    saveUser: async (request) => {
      const { principal, params, body } = request
      const { first_name: firstName, last_name: lastName, role, is_deactivated: isDeactivated, version } = body
      const change = withoutAbsent({ firstName, lastName, role, isDeactivated })
      const check = checkChange(principal)
      const saved = await saveUser(ctx.db, params.user_id, { ...change, version }, check, request)
      if (!saved) throw notFound('User')
      if (saved === 'last_owner') throw lastOwner()
      if (saved.kind === 'changed_meanwhile') throw changedMeanwhile(toUserOut(saved.user))
      changed(principal)
      return { body: toUserOut(saved.user) }
    },
    deleteUser: async (request) => {
      const { principal, params } = request
      const removed = await deleteUser(ctx.db, params.user_id, checkChange(principal), request)
      if (!removed) throw notFound('User')
      if (removed === 'last_owner') throw lastOwner()
      changed(principal)
      return { status: 204 }
    },
    createUserLink: async (request) => {
      const { principal, params, body } = request
      const { appUrl } = ctx.config
      if (appUrl === undefined) throw serviceUnavailable('Links need APP_URL, the address of this application.')
      // The link lets its bearer sign in as that person.
      if (body.kind === 'reset') assertConfirmed(principal)
      const link = await createUserLink(ctx.db, params.user_id, body.kind, checkChange(principal), request)
      if (!link) throw notFound('User')
      if (link === 'not_possible') throw linkNotPossible(body.kind)
      ctx.hints.add(principal.organizationId, 'users')
      return { body: { url: `${appUrl}/link#${link.token}`, expires_at: link.expiresAt.toISOString() } }
    },
    signUserOut: async (request) => {
      const { principal, params } = request
      if (!(await signUserOut(ctx.db, params.user_id, checkChange(principal), request))) throw notFound('User')
      return { status: 204 }
    },
  } satisfies Partial<AppHandlers>
}

/** Only owners change owners and make others owners, and they confirm a role that changes to or from owner. */
function checkChange(principal: Principal): CheckUserChange {
  return (user, next) => {
    if (user.role !== 'owner' && next?.role !== 'owner') return
    assertOwner(principal)
    if (next && next.role !== user.role) assertConfirmed(principal)
  }
}

function assertMayMakeOwner(principal: Principal): void {
  assertOwner(principal)
  assertConfirmed(principal)
}

function assertOwner({ role }: Principal): void {
  if (role !== 'owner') throw new ApiError('forbidden_for_role', 'Only owners can change owners.')
}

/** The state of a save whose version is not the stored one. */
export function changedMeanwhile(current: object): ApiError {
  return new ApiError('changed_meanwhile', 'This was changed since you opened it. Nothing was saved.', {
    extra: { current },
  })
}

function lastOwner(): ApiError {
  return new ApiError(
    'last_owner',
    'An organization needs an owner who can sign in. Make another person an owner first.',
  )
}

function linkNotPossible(kind: 'invitation' | 'reset'): ApiError {
  return new ApiError(
    'link_not_usable',
    kind === 'invitation'
      ? 'Only people with a role who have not accepted an invitation yet can be invited.'
      : 'A new password can be set for active people who belong to this organization only. The operator can make other links with wf users reset-link.',
  )
}

function withoutAbsent<Values extends object>(
  values: Values,
): { [Key in keyof Values]?: Exclude<Values[Key], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as never
}

function toUserOut(user: UserRow): AppUserOut {
  return {
    id: user.id,
    email: user.email,
    first_name: user.firstName,
    last_name: user.lastName,
    role: user.role,
    state: user.state,
    last_seen_at: user.lastSeenAt?.toISOString() ?? null,
    workflow_count: user.workflowCount,
    version: user.version,
  }
}
