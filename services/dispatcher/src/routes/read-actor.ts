import { parseActor, type Role } from '@workflow-service/contract'
import type { AuditedBy } from '@workflow-service/database'
import { invalidFields } from '@workflow-service/service-kit'

/**
 * Returns who makes the change of a request, as its audit event names the person; undefined without `X-Actor`. The
 * change is refused unless the person has the role `allowedAs`, or a higher one, when it is written.
 * @throws ApiError 422 on `X-Actor`
 */
export function readActor(
  organizationId: string,
  { headers, requestId }: { readonly headers: { readonly 'X-Actor'?: string }; readonly requestId: string },
  allowedAs: Role = 'admin',
): AuditedBy | undefined {
  const { 'X-Actor': text } = headers
  if (text === undefined) return undefined
  const actor = parseActor(text)
  if (!actor) {
    const message = 'must be a JSON object with user_id, name and address'
    throw invalidFields([{ field: 'X-Actor', code: 'value_error', message }])
  }
  const { user_id: userId, name, address } = actor
  return { principal: { organizationId, userId, name, address, allowedAs }, requestId }
}
