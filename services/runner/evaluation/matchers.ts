import { isJsonObject } from '@workflow-service/contract'

/**
 * Matchers in the expected payload of a case: objects whose names begin with `$`. Any other value matches itself.
 *
 * - `{"$number": 9.99, "$within": 0.01}`: a number that is not farther from it
 * - `{"$oneOf": [a, b]}`: one of these values or matchers
 * - `{"$text": "sample"}`: any text that is not empty
 * - `{"$contains": ["a", "b"]}`: a text with all of these parts, in any case
 * - `{"$pattern": "^A", "$sample": "A-1"}`: a text that matches the regular expression
 * - `{"$anyOrder": [a, b]}`: a list with these items in any order
 * - `{"$any": sample}`: any value; not counted
 * - `{"$absent": true}`: left out, or empty
 *
 * The samples are what a perfect model sends.
 */
export interface Matcher {
  readonly matches: (value: unknown) => boolean
  readonly sample: unknown
  /** For a mistake's text. */
  readonly description: string
}

/** The items of `$anyOrder`; undefined for any other value. */
export function anyOrderItems(expected: unknown): readonly unknown[] | undefined {
  return isJsonObject(expected) && Array.isArray(expected['$anyOrder']) ? expected['$anyOrder'] : undefined
}

export function isAbsent(expected: unknown): boolean {
  return expected === undefined || (isJsonObject(expected) && expected['$absent'] === true)
}

export function isUnscored(expected: unknown): boolean {
  return isJsonObject(expected) && '$any' in expected
}

/** Whether the value is a matcher, and not a structure whose fields are compared one by one. */
export function isMatcher(value: unknown): value is Record<string, unknown> {
  return isJsonObject(value) && Object.keys(value).some((name) => name.startsWith('$'))
}

/** @throws TypeError for an object with names that begin with `$` but are no matcher. */
export function toMatcher(expected: unknown): Matcher {
  if (!isMatcher(expected)) {
    return { matches: (value) => value === expected, sample: expected, description: JSON.stringify(expected) }
  }
  const description = JSON.stringify(expected)
  const { $number, $within = 0, $oneOf, $text, $contains, $pattern, $sample, $any } = expected
  if (typeof $number === 'number' && typeof $within === 'number') {
    const matches = (value: unknown): boolean => typeof value === 'number' && Math.abs(value - $number) <= $within
    return { matches, sample: $number, description }
  }
  if (Array.isArray($oneOf) && $oneOf.length > 0) {
    const matchers = $oneOf.map(toMatcher)
    const matches = (value: unknown): boolean => matchers.some((matcher) => matcher.matches(value))
    return { matches, sample: matchers[0]?.sample, description }
  }
  if (typeof $text === 'string') {
    return { matches: (value) => typeof value === 'string' && value.trim() !== '', sample: $text, description }
  }
  if (Array.isArray($contains) && $contains.length > 0 && $contains.every((part) => typeof part === 'string')) {
    const parts = $contains.map((part) => part.toLowerCase())
    const matches = (value: unknown): boolean =>
      typeof value === 'string' && parts.every((part) => value.toLowerCase().includes(part))
    return { matches, sample: $contains.join(' '), description }
  }
  if (typeof $pattern === 'string' && typeof $sample === 'string') {
    const pattern = new RegExp($pattern, 'u')
    if (!pattern.test($sample)) throw new TypeError(`$sample ${JSON.stringify($sample)} does not match $pattern`)
    return { matches: (value) => typeof value === 'string' && pattern.test(value), sample: $sample, description }
  }
  if ('$any' in expected) return { matches: () => true, sample: $any, description }
  throw new TypeError(`${description} is not a matcher`)
}

/** The payload that a perfect agent sends: samples for matchers, and the empty value of the example elsewhere. */
export function toSamplePayload(expected: unknown, example: unknown): unknown {
  if (isAbsent(expected)) return emptyLike(example)
  const items = anyOrderItems(expected) ?? (Array.isArray(expected) ? expected : undefined)
  if (items) {
    const itemExamples = Array.isArray(example) ? (example as unknown[]) : []
    return items.map((item) => toSamplePayload(item, commonFields(itemExamples)))
  }
  if (isMatcher(expected) || !isJsonObject(expected)) return toMatcher(expected).sample
  const fields = isJsonObject(example) ? example : {}
  const names = [...new Set([...Object.keys(fields), ...Object.keys(expected)])]
  return Object.fromEntries(names.map((name) => [name, toSamplePayload(expected[name], fields[name])]))
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
