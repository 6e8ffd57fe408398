import { isDeepStrictEqual } from 'node:util'
import { type LookupIn, trimWhiteSpace } from '@workflow-service/contract'
import { deriveId } from '../connection/index.ts'
import { type Lookup, LOOKUP_COLUMNS, normalizedName } from '../sources/index.ts'
import {
  absentFields,
  type ApplyContext,
  changesBetween,
  FOREIGN_ID,
  isSameSecret,
  lowerCaseId,
  type ManifestChange,
  type Plan,
  type PlannedSave,
  toPlainJson,
  toThing,
} from './apply-context.ts'

export type PlannedLookup = PlannedSave<LookupIn>

/** Resolves the id of each look-up: the given one, else that of this name, else one derived from the name. */
export async function planLookups(ctx: ApplyContext): Promise<Plan<PlannedLookup[]>> {
  const { organizationId, manifest } = ctx
  const entries = manifest.lookups ?? []
  const { rows } = await ctx.client.query<Lookup>(
    `SELECT ${LOOKUP_COLUMNS} FROM lookups WHERE organization_id = $1 OR id = ANY($2)`,
    [organizationId, entries.flatMap(({ id }) => lowerCaseId(id) ?? [])],
  )
  const lookups = entries.map(({ id: givenId, ...save }, index): PlannedLookup => {
    const key = normalizedName(save.name)
    const named = rows.find((row) => row.organizationId === organizationId && normalizedName(row.name) === key)
    const id = lowerCaseId(givenId) ?? named?.id ?? deriveId('look-up', organizationId, key)
    const stored = rows.find((row) => row.id === id)
    if (stored && stored.organizationId !== organizationId) ctx.report(`lookups[${index}].id`, FOREIGN_ID)
    // Without its name, the header goes.
    const kept = save.header_name ? absentFields(save, 'header_value') : []
    const thing = toThing({ kind: 'lookup', id, name: save.name, kept }, stored && changesOf(ctx, stored, save))
    return { ...thing, save, version: stored?.version ?? 0 }
  })
  return { result: lookups, things: lookups }
}

function changesOf(ctx: ApplyContext, stored: Lookup, save: LookupIn): ManifestChange[] {
  const { name, kind, url, header_name = null, header_value: value, tools } = save
  const wanted = { name: trimWhiteSpace(name), kind, url, header_name }
  const before = { name: stored.name, kind: stored.kind, url: stored.url, header_name: stored.headerName }
  // A server describes its tools itself.
  const compared = (list: typeof tools) => (kind === 'mcp' ? list.map((tool) => tool.name) : toPlainJson(list))
  const isSame = isDeepStrictEqual(compared(stored.tools), compared(tools))
  return [
    ...changesBetween(before, wanted),
    ...(isSame ? [] : [{ field: 'tools', old: stored.tools, new: tools }]),
    ...(isSameHeader(ctx, stored, value) ? [] : [{ field: 'header_value', old: null, new: 'another value' }]),
  ]
}

function isSameHeader(ctx: ApplyContext, stored: Lookup, value: string | null | undefined): boolean {
  if (value === undefined) return true
  if (value === null || !stored.headerValue) return value === stored.headerValue
  return isSameSecret(ctx, stored, stored.headerValue, value)
}
