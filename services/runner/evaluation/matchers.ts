import { isJsonObject } from '@workflow-service/contract'

/**
 * Whether the expected value is a matcher: an object whose names begin with `$`. Any other value matches itself.
 *
 * - `{"$contains": ["a", "b"]}`: a text with all of these parts, in any case
 * - `{"$any": sample}`: any value; not counted
 */
export function isMatcher(value: unknown): value is Record<string, unknown> {
  return isJsonObject(value) && Object.keys(value).some((name) => name.startsWith('$'))
}

export function isUnscored(expected: unknown): boolean {
  return isMatcher(expected) && '$any' in expected
}

/** Whether the value is the expected one, which has no fields to compare one by one. */
export function isMatch(expected: unknown, value: unknown): boolean {
  if (!isMatcher(expected)) return value === expected
  return (
    typeof value === 'string' && partsOf(expected).every((part) => value.toLowerCase().includes(part.toLowerCase()))
  )
}

/** The parts of `$contains`. */
export function partsOf({ $contains }: Record<string, unknown>): string[] {
  return Array.isArray($contains) ? $contains.filter((part) => typeof part === 'string') : []
}

/** The objects in the value that have names of matchers, but are none. */
export function findBadMatchers(expected: unknown): string[] {
  if (typeof expected !== 'object' || expected === null || isUnscored(expected)) return []
  if (!isMatcher(expected)) return Object.values(expected).flatMap(findBadMatchers)
  return partsOf(expected).length > 0 ? [] : [`${JSON.stringify(expected)} is not a matcher`]
}

/** Whether a payload has no value in it: what a service sends for a field that it knows nothing of. */
export function isEmpty(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) return Object.values(value).every(isEmpty)
  return value === undefined || value === null || value === '' || value === 0 || value === false
}
