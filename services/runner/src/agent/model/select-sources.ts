import { findNamedSources, RULES_FILE_NAME, truncateText } from '@workflow-service/contract'
import type { SourceForAgent, SourceName } from '@workflow-service/database'
import type { AgentRun } from '../agent.ts'
import { readInParts } from '../read-in-parts.ts'
import { readRulesText } from '../rules/read-rules-text.ts'

/**
 * Up to this number, each source has a tool if none is named. Of more sources, only those have one that a search found.
 */
const MAX_UNNAMED_SOURCES = 20
/** Tools of sources, and of look-ups. */
const MAX_SOURCE_TOOLS = 100
const MAX_LOOKUP_TOOLS = 100
/** Of both in all: OpenAI accepts at most 128 tools; the margin is for the other tools. */
const MAX_TOOLS = 120
/** Characters of the names of sources in a note. */
const MAX_NAMES_LENGTH = 2_000
/** The examples of all tools together, as JSON: their schemas are in every request to the model. */
const MAX_EXAMPLE_BYTES = 2 * 1_048_576

/**
 * Selects the sources that get tools (docs/agents.md, "Least privilege"): those that the workflow's description or
 * `rules.yaml` names, and no others. If none is named: all of a few; of many, those that searches found, which are in
 * the journal; and none if a look-up is named, because what it answers must not decide where to send. Look-ups have
 * tools only if they are named.
 * @throws RunParkedError as `readRulesText`.
 */
export async function selectSources(
  run: Pick<AgentRun, 'workflow' | 'listSources' | 'listLookups' | 'readSources' | 'readFile'>,
  foundIds: readonly string[] = [],
) {
  const sources = await run.listSources()
  const { description } = run.workflow
  const rules = (await readRulesText(run)) ?? ''
  const allLookups = await run.listLookups()
  const byId = new Map(sources.map((source) => [source.id, source]))
  // Of a source and a look-up with the same name, the source is named.
  const [byDescription, byRules] = [description, rules].map((text) =>
    findNamedSources<SourceName>(text, [...sources, ...allLookups]).map(({ id }) => id),
  ) as [string[], string[]]
  const namedIds = [...new Set([...byDescription, ...byRules])]
  const named = namedIds.flatMap((id) => byId.get(id) ?? [])
  const namedLookups = allLookups.filter(({ id }) => namedIds.includes(id))
  let lookupTools = 0
  const lookups = namedLookups.filter(({ tools }) => {
    const isWithinLimit = lookupTools + tools.length <= MAX_LOOKUP_TOOLS
    if (isWithinLimit) lookupTools += tools.length
    return isWithinLimit
  })
  const found = foundIds.flatMap((id) => byId.get(id) ?? [])
  const isMany = sources.length > MAX_UNNAMED_SOURCES
  const mustBeNamed = named.length > 0 || namedLookups.length > 0
  const inOrder = mustBeNamed ? named : isMany ? found : sources
  const maxSources = Math.min(MAX_SOURCE_TOOLS, MAX_TOOLS - lookupTools)
  const available: SourceForAgent[] = []
  let bytes = 0
  for await (const source of readInParts(run, inOrder.slice(0, maxSources))) {
    bytes += Buffer.byteLength(JSON.stringify(source.exampleRequestBody))
    if (bytes > MAX_EXAMPLE_BYTES) break
    available.push(source)
  }
  const availableIds = new Set(available.map(({ id }) => id))
  const others = sources.filter(({ id }) => !availableIds.has(id))
  const namesSource = (ids: readonly string[]): boolean => ids.some((id) => byId.has(id))
  const namedBy = [
    ...(namesSource(byDescription) ? ["the workflow's description"] : []),
    ...(namesSource(byRules) ? [RULES_FILE_NAME] : []),
  ]
  return {
    /** The sources that have a tool. */
    available,
    lookups,
    /** Those that get a tool when a search finds them. */
    searchable: mustBeNamed ? [] : others,
    /** Which have a tool and why, for people; null without any source, unless a look-up has none. */
    reason:
      [
        ...(sources.length === 0 ? [] : [describeSelection(available, others.length, namedBy, mustBeNamed)]),
        ...describeLeftOut(namedLookups.filter((lookup) => !lookups.includes(lookup))),
      ].join(' ') || null,
  }
}

function describeLeftOut(lookups: readonly SourceName[]): string[] {
  const names = truncateText(lookups.map(({ name }) => JSON.stringify(name)).join(', '), MAX_NAMES_LENGTH)
  return lookups.length === 0
    ? []
    : [`Look-ups without tools, since a run has at most ${MAX_LOOKUP_TOOLS} tools of look-ups: ${names}.`]
}

function describeSelection(
  available: readonly SourceName[],
  others: number,
  namedBy: readonly string[],
  mustBeNamed: boolean,
): string {
  const names = truncateText(available.map(({ name }) => JSON.stringify(name)).join(', '), MAX_NAMES_LENGTH)
  if (namedBy.length > 0) {
    const rest = others === 0 ? '' : ` The ${others} other webhook sources of the organization have none in this run.`
    return `Tools that send: ${names || 'none'}, which ${namedBy.join(' and ')} names.${rest}`
  }
  if (mustBeNamed) {
    return 'The workflow names a look-up and no webhook source, so no webhook source has a tool: name those to send to.'
  }
  const why = `Neither the workflow's description nor ${RULES_FILE_NAME} names a webhook source`
  return others === 0
    ? `${why}, so all of the organization have a tool: ${names}.`
    : `${why}, and the organization has many: the ${others} without a tool get one when the model searches for them.`
}
