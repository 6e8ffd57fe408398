import { findSimilar, truncateText } from '@workflow-service/contract'
import type { Rules } from './parse-rules.ts'
import type { RuleError } from './rule-place.ts'

/** Errors that suggest a name: each compares all. */
const MAX_SUGGESTIONS = 3

/**
 * Finds the webhook source of each delivery, and the errors of those whose source does not exist, or can be several:
 * names of an organization may differ in white space only.
 */
export function findSources<Source extends { readonly name: string }>(
  { deliveries }: Rules,
  sources: readonly Source[],
): { found: (Source | undefined)[]; errors: RuleError[] } {
  const byName = Map.groupBy(sources, ({ name }) => normalize(name))
  const bySpelling = new Map(sources.map((source) => [ignoreCase(source.name), source]))
  const alike = deliveries.map(({ to }) => byName.get(normalize(to)) ?? [])
  const found = deliveries.map(({ to }, index) => {
    const [only, ...others] = alike[index]!
    return others.length === 0 ? only : bySpelling.get(ignoreCase(to))
  })
  const names = sources.map(({ name }) => name)
  let unknownCount = 0
  const errors = deliveries.flatMap(({ to, errorAt }, index) => {
    if (found[index]) return []
    const quoted = JSON.stringify(truncateText(to, 100))
    if (alike[index]!.length > 0) {
      return [errorAt(['to'], `${quoted} can be several webhook sources; write the exact name of one`)]
    }
    const similar = unknownCount++ < MAX_SUGGESTIONS ? findSimilar(to, names) : undefined
    const hint = similar === undefined ? '' : `; did you mean ${JSON.stringify(similar)}?`
    return [errorAt(['to'], `there is no webhook source ${quoted}${hint}`)]
  })
  return { found, errors }
}

/** Case and the amount of white space do not matter, as in a description. */
function normalize(name: string): string {
  return ignoreCase(name).replace(/\s+/gu, ' ').trim()
}

/** No two sources of an organization differ in case only. */
function ignoreCase(name: string): string {
  return name.normalize('NFC').toLowerCase()
}
