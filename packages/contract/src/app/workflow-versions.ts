import { Closed, List, Nullable, Optional, Parameters, type Static } from '../schema/objects.ts'
import { DateTime, Int, Str, StringEnum, Uuid } from '../schema/values.ts'
import { ListOf } from './common.ts'
import { AuditChangeOut } from './overview.ts'

/** The parts of a workflow that its versions have. */
export const VERSION_PARTS = ['name', 'description', 'triggers', 'files'] as const

export const WorkflowVersionOut = Closed('WorkflowVersionOut', 'What a save made of a workflow.', {
  id: Uuid('The version.'),
  number: Int('From 1.'),
  created_at: DateTime('When it was saved.'),
  saved_by: Nullable(Str('The name of the person, or `operator`; null: not known.')),
  parts: List(StringEnum(VERSION_PARTS, 'A part.'), 'What differs from the version before.'),
})
export type WorkflowVersionOut = Static<typeof WorkflowVersionOut>
export const WorkflowVersionList = ListOf('WorkflowVersionList', WorkflowVersionOut, 'The newest 100 of 16 MiB.')
export const VersionCompareQuery = Parameters({
  with: Optional(StringEnum(['previous', 'newest'], 'The version before, or the newest one.', { default: 'previous' })),
})
export const WorkflowVersionDetailOut = Closed('WorkflowVersionDetailOut', 'A version, compared with another one.', {
  ...WorkflowVersionOut.properties,
  changes: List(AuditChangeOut, 'The differences, in the order of time. Of a file, the first 100,000 characters.'),
})
export const RestoreVersionIn = Closed('RestoreVersionIn', 'Restores a version.', {
  newest: Int('The number of the newest version that the person has seen.', { minimum: 1 }),
})
