import type { TSchema } from 'typebox'
import { Closed, List, Nullable } from '../schema/objects.ts'
import { Type } from '../schema/type.ts'
import { Str, Uuid } from '../schema/values.ts'

/** A list that is answered whole: `data`. */
export function ListOf<Item extends TSchema>(title: string, item: Item, description: string) {
  return Closed(title, description, { data: List(item, 'The entries.') })
}

export const VERSION_DESCRIPTION =
  'Identifies the saved values. A save sends the version that it edited; another one is answered 409 `changed_meanwhile`.'
export const Version = Str(VERSION_DESCRIPTION)
export const EditedVersion = Str(VERSION_DESCRIPTION, { maxLength: 100 })
export const NewOrEditedVersion = Nullable(Str(`Null: new. ${VERSION_DESCRIPTION}`, { maxLength: 100 }))

/** A person of an organization, where only the name is shown. */
export const PersonOut = Closed('PersonOut', 'A person.', {
  id: Uuid('The user.'),
  name: Str('The name, or the email address without one.'),
})

export const Counts = Type.Unsafe<Record<string, number>>({
  type: 'object',
  additionalProperties: { type: 'integer' },
  description: 'Counts by name; a name without any is absent.',
})

export const ManifestOut = Closed('ManifestOut', 'A manifest.', {
  yaml: Str('The manifest; applying it changes nothing.'),
})
