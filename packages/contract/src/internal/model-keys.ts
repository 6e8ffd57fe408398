import { Closed } from '../schema/objects.ts'
import { Str, Text } from '../schema/values.ts'

export const ModelKeyIn = Closed('ModelKeyIn', "A key of an organization's own.", {
  model: Text(200, 'The name of the model, as the runners offer it.', 1),
  key: Str('The key of its API; never shown again.', {
    minLength: 12,
    maxLength: 500,
    pattern: '^[\\x21-\\x7e]+$',
    writeOnly: true,
  }),
})
