import { closestNameFinder, type RefusalDetails, toStorableText, truncateText } from '@workflow-service/contract'
import { allowsAnyField, inferShape, type PayloadShape } from '@workflow-service/contract/payload-shape'
import type { ContextValue } from '@workflow-service/rules/convert-value'
import { type FilledPayload, listPaths } from './fill-payload.ts'
import { foldName } from './fold-name.ts'
import { PlanError } from './plan-error.ts'
import { isContextObject } from '../context-values.ts'
import type { ReadContext } from './read-context.ts'

/** Entries of each list in the details, and those that the message names. */
const [MAX_DETAILS, MAX_LISTED] = [100, 20]

/** The payload of a source, with the source's example as far as the context fills it. */
interface PlannedPayload {
  readonly source: string
  readonly example: Record<string, unknown>
  readonly filled: Pick<FilledPayload, 'missing' | 'unusable'>
}

/**
 * Throws if a payload is incomplete, or if no payload has the value of a line: it may be a correction ("Erratum: 6").
 * JSON usually has more than the fields.
 * @throws PlanError `payload_incomplete`
 */
export function refuseIncomplete(
  context: ReadContext,
  payloads: readonly PlannedPayload[],
  ignoresLines = false,
): void {
  const unusable = payloads.flatMap(({ source, filled }) => filled.unusable.map((entry) => ({ source, ...entry })))
  const missing = payloads.flatMap(({ source, filled }) => filled.missing.map((field) => ({ source, field })))
  if (unusable.length + missing.length === 0 && (ignoresLines || 'json' in context)) return
  const unused = listUnusedNames(context, payloads)
  if (unusable.length + missing.length + unused.length === 0) return
  const shown = unused.slice(0, MAX_DETAILS)
  // The listed fields are compared with all names, the others with those that are shown.
  const [findClosest, findShown] = [closestNameFinder(unused), closestNameFinder(shown)]
  const details = {
    sources: payloads.slice(0, MAX_DETAILS).map(({ source }) => source),
    missing: missing.slice(0, MAX_DETAILS).map(({ source, field }, index) => {
      return { source, field: toText(field), closest: (index < MAX_LISTED ? findClosest : findShown)(field) }
    }),
    unusable: unusable.slice(0, MAX_DETAILS).map((entry) => ({ ...entry, field: toText(entry.field) })),
    unused: shown,
    ...('lines' in context && ({ in_lines: true } as const)),
  }
  throw new PlanError('payload_incomplete', describe(details), details)
}

function describe({ sources, missing, unusable, unused }: RefusalDetails): string {
  const isOne = sources.length === 1
  const gaps = missing.map(({ source, field, closest }) => {
    return `${field}${isOne ? '' : ` of ${source}`}${closest === null ? '' : `, closest name ${JSON.stringify(closest)}`}`
  })
  const faults = unusable.map(({ source, field, reason }) => `${field}${isOne ? '' : ` of ${source}`} (${reason})`)
  const texts = Object.entries({
    'No value for': gaps,
    'Values that cannot be used': faults,
    'Names that no field took': unused.map((name) => JSON.stringify(name)),
  }).map(([title, entries]) => {
    const more = entries.length > MAX_LISTED ? ` and ${entries.length - MAX_LISTED} more` : ''
    return entries.length === 0 ? '' : `. ${title}: ${entries.slice(0, MAX_LISTED).join('; ')}${more}`
  })
  return `Nothing was sent to ${sources.slice(0, MAX_LISTED).join(', ')}${texts.join('')}`
}

/** The names of the context that are no field of the examples; those in JSON with their path: `lines[].sku`. */
function listUnusedNames(context: ReadContext, payloads: readonly PlannedPayload[]): string[] {
  const shapes = payloads.map(({ example }) => inferShape(example))
  const known = new Set<string>()
  const unused = new Set<string>()
  if ('lines' in context) {
    for (const path of shapes.flatMap((shape) => listPaths(shape))) known.add(foldName(path))
    for (const [folded, { name }] of context.lines) if (!known.has(folded)) unused.add(toText(name))
  } else {
    for (const shape of shapes) addFields(shape, '', known)
    addUnused(context.json, { path: [], key: '' }, known, unused)
  }
  return [...unused]
}

/** Adds the folded paths of the fields that hold values, those of list items included. */
function addFields({ list, object }: PayloadShape, key: string, known: Set<string>): void {
  if (list) addFields(list, key, known)
  else if (!object || allowsAnyField(object)) known.add(key)
  else for (const [name, field] of object.fields) addFields(field, `${key}.${foldName(name)}`, known)
}

type Place = { readonly path: readonly string[]; readonly key: string }

function addUnused(value: ContextValue, place: Place, known: ReadonlySet<string>, unused: Set<string>): void {
  if (known.has(place.key) || unused.size >= 10 * MAX_DETAILS) return
  if (Array.isArray(value)) for (const item of value) addUnused(item, inList(place), known, unused)
  else if (isContextObject(value)) {
    for (const [name, item] of Object.entries(value)) {
      addUnused(item, { path: [...place.path, name], key: `${place.key}.${foldName(name)}` }, known, unused)
    }
  } else if (place.path.length > 0) unused.add(toText(place.path.join('.')))
}

/** The items of a list have its name with `[]`: `lines[].sku`. */
function inList({ path, key }: Place): Place {
  return { path: [...path.slice(0, -1), `${path.at(-1) ?? ''}[]`], key }
}

/** Names can be as long as a body, and have characters that PostgreSQL does not store. */
function toText(name: string): string {
  return truncateText(toStorableText(name.slice(0, 500)), 200)
}
