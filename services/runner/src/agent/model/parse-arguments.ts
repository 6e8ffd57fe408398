import { isStorableText, PAYLOAD_MAX_DEPTH, truncateText } from '@workflow-service/contract'
import { isExactNumber } from '@workflow-service/rules/convert-value'
import { toStorableText } from '../../storable-text.ts'

/** The arguments of a tool call, or why they cannot be used. */
export type ParsedArguments =
  | { readonly value: Record<string, unknown>; readonly fault: null }
  /** `value` is what the model wrote, in a form that the journal accepts. */
  | { readonly value: unknown; readonly fault: string }

/** JSON.parse with the source text of each value (ECMAScript 2026), which TypeScript's library does not know yet. */
const parseWithSource = JSON.parse as (
  text: string,
  reviver: (name: string, value: unknown, context: { readonly source?: string }) => unknown,
) => unknown

/**
 * Parses the arguments that a model wrote as JSON. Empty text means none: some servers send it for a tool without
 * parameters. Refuses what JSON.parse would change silently: numbers that a double cannot hold, and the name
 * `__proto__`; and texts that PostgreSQL cannot read from the journal: `->>` fails for a document with one.
 */
export function parseArguments(input: string): ParsedArguments {
  let problem: string | null = null
  let value: unknown
  try {
    value = parseWithSource(input.trim() === '' ? '{}' : input, (name, item, { source }) => {
      if (!isStorableText(name) || (typeof item === 'string' && !isStorableText(item))) {
        problem ??= 'a text has a NUL character or half of a surrogate pair'
      }
      if (name === '__proto__') problem ??= 'a field is named __proto__'
      if (typeof item === 'number' && !isExactNumber(source ?? String(item))) {
        const number = truncateText(source ?? String(item), 60)
        problem ??= `the number ${number} has more digits than can be sent exactly; send it as text if the field takes text`
      }
      return item
    })
  } catch {
    return refused(truncateText(toStorableText(input), 10_000), 'they must be one JSON object')
  }
  if (problem !== null) return refused(truncateText(toStorableText(input), 10_000), problem)
  if (isTooDeep(value, 1)) return refused('nested too deep', `they must be at most ${PAYLOAD_MAX_DEPTH} levels deep`)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return refused(typeof value === 'string' ? truncateText(value, 10_000) : value, 'they must be one JSON object')
  }
  return { value: value as Record<string, unknown>, fault: null }
}

function refused(value: unknown, reason: string): ParsedArguments {
  return { value, fault: `The arguments could not be read: ${reason}. Nothing was done; call the tool again.` }
}

function isTooDeep(value: unknown, level: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return level > PAYLOAD_MAX_DEPTH || Object.values(value).some((item) => isTooDeep(item, level + 1))
}
