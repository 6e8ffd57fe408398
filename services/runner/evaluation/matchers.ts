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

function partsOf({ $contains }: Record<string, unknown>): string[] {
  return Array.isArray($contains) ? $contains.filter((part) => typeof part === 'string') : []
}

/** The payload that a perfect agent sends: samples for matchers, and the empty value of the example elsewhere. */
export function toSamplePayload(expected: unknown, example: unknown): unknown {
  if (expected === undefined) return emptyLike(example)
  if (Array.isArray(expected)) {
    const itemExamples = Array.isArray(example) ? (example as unknown[]) : []
    return expected.map((item) => toSamplePayload(item, commonFields(itemExamples)))
  }
  if (isMatcher(expected)) return isUnscored(expected) ? expected['$any'] : partsOf(expected).join(' ')
  if (!isJsonObject(expected)) return expected
  const fields = isJsonObject(example) ? example : {}
  const names = [...new Set([...Object.keys(fields), ...Object.keys(expected)])]
  return Object.fromEntries(names.map((name) => [name, toSamplePayload(expected[name], fields[name])]))
}

/** The objects in the value that have names of matchers, but are none. */
export function findBadMatchers(expected: unknown): string[] {
  if (typeof expected !== 'object' || expected === null || isUnscored(expected)) return []
  if (!isMatcher(expected)) return Object.values(expected).flatMap(findBadMatchers)
  return partsOf(expected).length > 0 ? [] : [`${JSON.stringify(expected)} is not a matcher`]
}

/** An example item with the fields that all items have: others are optional. */
function commonFields(items: readonly unknown[]): unknown {
  const [first] = items
  if (!isJsonObject(first)) return first
  const names = Object.keys(first).filter((name) => items.every((item) => isJsonObject(item) && name in item))
  return Object.fromEntries(names.map((name) => [name, first[name]]))
}

function emptyLike(example: unknown): unknown {
  if (Array.isArray(example)) return []
  if (isJsonObject(example)) {
    return Object.fromEntries(Object.entries(example).map(([name, value]) => [name, emptyLike(value)]))
  }
  return { string: '', number: 0, boolean: false }[typeof example as string] ?? null
}

/** Whether a payload has no value in it: what a service sends for a field that it knows nothing of. */
export function isEmpty(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) return Object.values(value).every(isEmpty)
  return value === undefined || value === null || value === '' || value === 0 || value === false
}
