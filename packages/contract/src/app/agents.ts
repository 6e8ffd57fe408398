import { LookupCallIn, LookupIn, LookupOut } from '../internal/lookups.ts'
import { ModelKeyIn } from '../internal/resources.ts'
import { INSTRUCTIONS_MAX_LENGTH } from '../limits.ts'
import { Closed, List, type Static } from '../schema/objects.ts'
import { DateTime, Int, Str, Text, Uuid } from '../schema/values.ts'
import { EditedVersion, ListOf, NewOrEditedVersion, Version } from './common.ts'

/** What agents with a model follow, look up, and are asked with. */

export const InstructionVersionOut = Closed('InstructionVersionOut', "A version of the organization's instructions.", {
  number: Int('From 1.'),
  text: Str('The instructions; empty: none.'),
  saved_by: Str('The name of the person, or `operator`.'),
  saved_at: DateTime('When it was saved.'),
})
export type InstructionVersionOut = Static<typeof InstructionVersionOut>

export const InstructionsOut = Closed('InstructionsOut', 'What agents with a model follow.', {
  text: Str('The newest instructions of the organization; empty: none.'),
  version: Version,
  system_text: Str('The system text as a model gets it, with the newest instructions, of a workflow named `NAME`.'),
  versions: List(InstructionVersionOut, 'The newest 50 versions, newest first.'),
})
export type InstructionsOut = Static<typeof InstructionsOut>

export const SaveInstructionsIn = Closed('SaveInstructionsIn', 'New instructions, which become a version.', {
  text: Text(INSTRUCTIONS_MAX_LENGTH, 'The instructions; empty: none.', 0, { format: 'trimmed' }),
  version: EditedVersion,
})

export const AppLookupOut = Closed('AppLookupOut', 'A look-up.', { ...LookupOut.properties, version: Version })
export type AppLookupOut = Static<typeof AppLookupOut>

export const AppLookupList = ListOf('AppLookupList', AppLookupOut, 'Every look-up, sorted by name.')

export const SaveLookupIn = Closed('SaveLookupIn', 'A look-up to save.', {
  ...LookupIn.properties,
  version: NewOrEditedVersion,
})

export const TestLookupIn = Closed('TestLookupIn', 'A call of a tool of a look-up.', {
  tool: LookupCallIn.properties.tool,
  arguments: LookupCallIn.properties.arguments,
})

export const ModelKeyOut = Closed('ModelKeyOut', "A key of the organization's own for a model.", {
  id: Uuid('The key; new with each save.'),
  model: ModelKeyIn.properties.model,
  last_characters: Str('The last 4 characters of the key.'),
  saved_by: Str('The name of the person.'),
  saved_at: DateTime('When it was saved.'),
})
export type ModelKeyOut = Static<typeof ModelKeyOut>

export const ModelKeyList = ListOf('ModelKeyList', ModelKeyOut, "The organization's own keys, by model.")
