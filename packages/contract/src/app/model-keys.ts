import { ModelKeyIn } from '../internal/resources.ts'
import { Closed, type Static } from '../schema/objects.ts'
import { DateTime, Str, Uuid } from '../schema/values.ts'
import { ListOf } from './common.ts'

export const ModelKeyOut = Closed('ModelKeyOut', "A key of the organization's own for a model.", {
  id: Uuid('The key; new with each save.'),
  model: ModelKeyIn.properties.model,
  last_characters: Str('The last 4 characters of the key.'),
  saved_by: Str('The name of the person.'),
  saved_at: DateTime('When it was saved.'),
})
export type ModelKeyOut = Static<typeof ModelKeyOut>

export const ModelKeyList = ListOf('ModelKeyList', ModelKeyOut, "The organization's own keys, by model.")
export { ModelKeyIn }
