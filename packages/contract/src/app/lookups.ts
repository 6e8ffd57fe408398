import { LookupCallIn, LookupIn, LookupOut } from '../internal/lookups.ts'
import { Closed, type Static } from '../schema/objects.ts'
import { NewOrEditedVersion, Version, ListOf } from './common.ts'

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
