import { findSimilar } from '@workflow-service/contract'
import { CliError } from './cli-error.ts'
import { withoutControls } from './terminal.ts'

const MAX_LISTED = 10

/** Returns the only candidate. @throws CliError with the message and the candidates, if there are several. */
export function chooseFrom<Candidate extends { readonly id: string; readonly name: string }>(
  candidates: readonly Candidate[],
  message: string,
): Candidate {
  const [only, ...others] = candidates
  if (only && others.length === 0) return only
  const lines = candidates.slice(0, MAX_LISTED).map(({ id, name }) => withoutControls(`  ${id}  ${name}`))
  if (candidates.length > MAX_LISTED) lines.push('  …')
  throw new CliError([message, ...lines].join('\n'))
}

/** A hint at the name that is most similar to the given one, or else at the known ones. Empty if there are none. */
export function listKnown(given: string, known: readonly string[]): string {
  if (known.length === 0) return ''
  const similar = findSimilar(given, known)
  if (similar !== undefined) return ` Did you mean ${JSON.stringify(similar)}?`
  const lines = known.slice(0, MAX_LISTED).map((name) => withoutControls(`  ${name}`))
  if (known.length > MAX_LISTED) lines.push('  …')
  return ` It has:\n${lines.join('\n')}`
}
