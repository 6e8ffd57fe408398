import { type TSchema, Type } from 'typebox'
import { PageInfo } from '../public/resources.ts'
import { CLOSED, Nullable, Uuid } from '../schema/types.ts'

/** The roles of a user of an organization, the most powerful first (contract README, "Application"). */
export const ROLES = ['owner', 'admin', 'member'] as const
export type Role = (typeof ROLES)[number]

export const RUN_STATUSES = ['queued', 'running', 'waiting', 'succeeded', 'failed'] as const
export type RunStatus = (typeof RUN_STATUSES)[number]

/** What began a run: an API key, the schedule, or a person in the application. */
export const RUN_ORIGINS = ['api', 'auto_run', 'app'] as const

/** A text that PostgreSQL can store: no NUL and no lone surrogate. */
export function Text(maxLength: number, description: string, minLength = 0) {
  return Type.String({ minLength, maxLength, format: 'storable', description })
}

/** What people call something: a text with a character that they can see. */
export function Name(maxLength: number, description: string, minLength = 1) {
  return Type.String({ minLength, maxLength, format: 'name', description })
}

/** Makes the schema of an object without further fields. */
export function Closed<Properties extends Record<string, TSchema>>(
  title: string,
  description: string,
  properties: Properties,
) {
  return Type.Object(properties, { ...CLOSED, title, description })
}

/** A list page: `data` and `pagination`, as in the public API. */
export function PageOf<Item extends TSchema>(title: string, item: Item) {
  return Closed(title, 'One page; the newest entry first unless said otherwise.', {
    data: Type.Array(item, { description: 'The entries.' }),
    pagination: PageInfo,
  })
}

export const VERSION_DESCRIPTION =
  'Identifies the saved values. A save sends the version that it edited; another one is answered 409 `changed_meanwhile`.'
export const Version = Type.String({ description: VERSION_DESCRIPTION })
export const EditedVersion = Type.String({ maxLength: 100, description: VERSION_DESCRIPTION })
export const NewOrEditedVersion = Nullable(
  Type.String({ maxLength: 100, description: `Null: new. ${VERSION_DESCRIPTION}` }),
)

/** A person of an organization, where only the name is shown. */
export const PersonOut = Closed('PersonOut', 'A person.', {
  id: Uuid({ description: 'The user.' }),
  name: Type.String({ description: 'The name, or the email address without one.' }),
})
