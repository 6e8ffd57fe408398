import { findSimilar, truncateText } from '@workflow-service/contract'
import type { Rules } from './parse-rules.ts'
import type { RuleError } from './rule-place.ts'

/** Errors that suggest a name: each compares all. */
const MAX_SUGGESTIONS = 3

/** Finds the webhook source of each delivery, and the errors of those whose source does not exist. */
export function findSources<Source extends { readonly name: string }>(
  { deliveries }: Rules,
  sources: readonly Source[],
): { found: (Source | undefined)[]; errors: RuleError[] } {
  const byName = new Map(sources.map((source) => [normalize(source.name), source]))
  const found = deliveries.map(({ to }) => byName.get(normalize(to)))
  const names = sources.map(({ name }) => name)
  let unknownCount = 0
  const errors = deliveries.flatMap(({ to, errorAt }, index) => {
    if (found[index]) return []
    const similar = unknownCount++ < MAX_SUGGESTIONS ? findSimilar(to, names) : undefined
    const hint = similar === undefined ? '' : `; did you mean ${JSON.stringify(similar)}?`
    return [errorAt(['to'], `there is no webhook source ${JSON.stringify(truncateText(to, 100))}${hint}`)]
  })
  return { found, errors }
}

/** Case and the amount of white space do not matter, as in a description. */
function normalize(name: string): string {
  return name.normalize('NFC').toLowerCase().replace(/\s+/gu, ' ').trim()
}
