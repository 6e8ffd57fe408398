import {
  type CheckUserChange,
  createUser,
  createUserLink,
  deleteUser,
  listUsers,
  type NewUserLink,
  saveUser,
  signUserOut,
} from '@workflow-service/database'
import { ApiError, invalidFields, notFound, serviceUnavailable } from '@workflow-service/service-kit'
import type { AppServiceContext } from '../../app-service-context.ts'
import { assertConfirmed, type Principal } from '../../auth/principal.ts'
import { type AppHandlers, changedMeanwhile } from '../app-handlers.ts'
import { BY_EMAIL, pageOfRows } from '../paging.ts'

export function userHandlers(ctx: AppServiceContext) {
  const changed = ({ organizationId }: Principal): void => ctx.changeNotices.add(organizationId, 'users', 'workflows')
  return {
    listUsers: ({ principal, query }) =>
      pageOfRows(
        query,
        BY_EMAIL,
        ({ email }) => email,
        (page) => listUsers(ctx.db, principal, page),
      ),
    createUser: async (request) => {
      const { principal, body } = request
      checkChange(principal)({ role: null }, body)
      const created = await createUser(ctx.db, body, request)
      if (created === 'email_taken') throw emailTaken()
      if (created === 'id_taken') throw new ApiError('id_taken', 'This id is used already. Choose a new one.')
      changed(principal)
      return created
    },
    saveUser: async (request) => {
      const { principal, params, body } = request
      const saved = await saveUser(ctx.db, params.user_id, body, checkChange(principal), request)
      if (!saved) throw notFound('User')
      if (saved === 'last_owner') throw lastOwner()
      if (saved.kind === 'changed_meanwhile') throw changedMeanwhile(saved.user)
      changed(principal)
      return saved.user
    },
    deleteUser: async (request) => {
      const { principal, params } = request
      const removed = await deleteUser(ctx.db, params.user_id, checkChange(principal), request)
      if (!removed) throw notFound('User')
      if (removed === 'last_owner') throw lastOwner()
      changed(principal)
    },
    createUserLink: async (request) => {
      const { principal, params, body } = request
      const { appUrl } = ctx.config
      if (appUrl === undefined) throw serviceUnavailable('Links need APP_URL, the address of this application.')
      // The link lets its bearer sign in as that person.
      if (body.kind !== 'invitation') assertConfirmed(principal)
      const link = await createUserLink(ctx.db, params.user_id, toNewLink(body), checkChange(principal), request)
      if (!link) throw notFound('User')
      if (link === 'not_possible') throw new ApiError('link_not_usable', LINK_NOT_POSSIBLE[body.kind])
      if (link === 'email_taken') throw emailTaken()
      ctx.changeNotices.add(principal.organizationId, 'users')
      return { url: `${appUrl}/link#${link.token}`, expires_at: link.expiresAt.toISOString() }
    },
    signUserOut: async (request) => {
      const { principal, params } = request
      if (!(await signUserOut(ctx.db, params.user_id, checkChange(principal), request))) throw notFound('User')
    },
  } satisfies Partial<AppHandlers>
}

/** Only owners change owners and make others owners, and they confirm a role that changes to or from owner. */
function checkChange(principal: Principal): CheckUserChange {
  return (user, next) => {
    if (user.role !== 'owner' && next?.role !== 'owner') return
    if (principal.role !== 'owner') throw new ApiError('forbidden_for_role', 'Only owners can change owners.')
    if (next && next.role !== user.role) assertConfirmed(principal)
  }
}

function emailTaken(): ApiError {
  return new ApiError('email_taken', 'This email address is used already. Choose another.')
}

function lastOwner(): ApiError {
  return new ApiError(
    'last_owner',
    'An organization needs an owner who can sign in. Make another person an owner first.',
  )
}

function toNewLink({ kind, email }: { kind: NewUserLink['kind']; email?: string | undefined }): NewUserLink {
  if (kind === 'email' && email !== undefined) return { kind, email }
  if (kind !== 'email' && email === undefined) return { kind }
  throw invalidFields([
    email === undefined
      ? { field: 'email', code: 'missing', message: 'is required: the new address' }
      : { field: 'email', code: 'extra_forbidden', message: 'is only for a link of the kind email; remove it' },
  ])
}

const LINK_NOT_POSSIBLE: Record<NewUserLink['kind'], string> = {
  invitation: 'Only people with a role who have not accepted an invitation yet can be invited.',
  reset:
    'A new password can be set for active people who belong to this organization only. The operator can make other links with wf users reset-link.',
  email:
    'The address can be changed of active people who have a password and belong only to organizations of which you are an admin, or an owner where they are. The operator can make other links with wf users email-link.',
}
