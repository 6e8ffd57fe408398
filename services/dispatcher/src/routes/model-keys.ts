import { newId, operatorOf, saveModelKey } from '@workflow-service/database'
import { invalidFields } from '@workflow-service/service-kit'
import type { DispatcherContext } from '../dispatcher-context.ts'
import type { InternalHandlers } from './internal-handlers.ts'
import { readActor } from './read-actor.ts'

/** Encrypts and saves a key of an organization's own for a model. */
export function saveKey(ctx: DispatcherContext): InternalHandlers['saveModelKey'] {
  return async (request) => {
    const { organization_id: organizationId } = request.params
    const { model, key: given } = request.body
    const id = newId()
    const key = ctx.secrets.encrypt({ organizationId, id }, given)
    const saved = { id, organizationId, model, key, lastCharacters: given.slice(-4) }
    if (await saveModelKey(ctx.db, saved, readActor(organizationId, request) ?? operatorOf(organizationId))) {
      ctx.changeNotices.add(organizationId, 'organization')
      return { status: 204 }
    }
    throw invalidFields([{ field: 'model', code: 'value_error', message: 'is no model that the organization may use' }])
  }
}
