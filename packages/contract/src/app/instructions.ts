import { INSTRUCTIONS_MAX_LENGTH } from '../limits.ts'
import { Closed, List, type Static } from '../schema/objects.ts'
import { DateTime, Int, Str, Text } from '../schema/values.ts'
import { EditedVersion, Version } from './common.ts'

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
  text: Text(INSTRUCTIONS_MAX_LENGTH, 'The instructions; empty: none.'),
  version: EditedVersion,
})
