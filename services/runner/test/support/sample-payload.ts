import { isJsonObject } from '@workflow-service/contract'
import { isMatcher } from '../../evaluation/score-run.ts'

/** The payload that a perfect agent sends: samples for matchers, and the empty value of the example elsewhere. */
export function toSamplePayload(expected: unknown, example: unknown): unknown {
  if (expected === undefined) return emptyLike(example)
  if (Array.isArray(expected)) {
    const itemExamples = Array.isArray(example) ? (example as unknown[]) : []
    return expected.map((item) => toSamplePayload(item, commonFields(itemExamples)))
  }
  if (isMatcher(expected)) return expected.$any ?? expected.$contains?.join(' ')
  if (!isJsonObject(expected)) return expected
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
