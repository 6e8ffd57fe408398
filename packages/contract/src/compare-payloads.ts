import type { CaseDifference, CasePayload } from './app/evaluations.ts'
import { MISMATCHES_MAX_COUNT } from './limits.ts'
import { isJsonObject } from './schema/payload-shape.ts'
import { truncateText } from './schema/text.ts'

/** Characters of a value in a difference. */
const MAX_VALUE_LENGTH = 300

/**
 * Lists where payloads differ from those that are right, in any order of them and of their fields; at most 20
 * entries. Takes time in proportion to the payloads: those of a source that are equal are paired first, then the others
 * in order.
 */
export function comparePayloads(expected: readonly CasePayload[], actual: readonly CasePayload[]): CaseDifference[] {
  const differences: CaseDifference[] = []
  const left = Map.groupBy(
    actual.map((sent) => ({ ...sent, text: canonicalJson(sent.payload) })),
    ({ source_id: id }) => id,
  )
  const unequal = expected.filter(({ source_id: id, payload }) => {
    const candidates = left.get(id) ?? []
    const right = canonicalJson(payload)
    const index = candidates.findIndex(({ text }) => text === right)
    if (index !== -1) candidates.splice(index, 1)
    return index === -1
  })
  const add = (source_name: string, path: string, values: readonly [expected: unknown, actual: unknown]): void => {
    if (differences.length === MISMATCHES_MAX_COUNT) return
    const [right, sent] = values.map((value) => (value === undefined ? null : canonicalJson(value, MAX_VALUE_LENGTH)))
    differences.push({ source_name, field: path, expected: right ?? null, actual: sent ?? null })
  }
  for (const { source_id, source_name, payload } of unequal) {
    const sent = left.get(source_id)?.shift()
    if (sent) compareValues(payload, sent.payload, '', (...difference) => add(source_name, ...difference))
    else add(source_name, '', [payload, undefined])
  }
  for (const { source_name, payload } of [...left.values()].flat()) add(source_name, '', [undefined, payload])
  return differences
}

function compareValues(
  expected: unknown,
  actual: unknown,
  path: string,
  add: (path: string, values: readonly [unknown, unknown]) => void,
): void {
  const [right, sent] = [fieldsOf(expected), fieldsOf(actual)]
  if (!right || !sent || Array.isArray(expected) !== Array.isArray(actual)) {
    if (canonicalJson(expected) !== canonicalJson(actual)) add(path, [expected, actual])
    return
  }
  for (const name of new Set([...right.keys(), ...sent.keys()])) {
    compareValues(right.get(name), sent.get(name), path === '' ? name : `${path}.${name}`, add)
  }
}

function fieldsOf(value: unknown): Map<string, unknown> | undefined {
  return typeof value === 'object' && value !== null ? new Map(Object.entries(value)) : undefined
}

/** JSON whose fields are sorted. */
export function canonicalJson(value: unknown, maxLength?: number): string {
  const text =
    JSON.stringify(value, (_, each: unknown) =>
      isJsonObject(each) ? Object.fromEntries(Object.entries(each).toSorted(([a], [b]) => (a < b ? -1 : 1))) : each,
    ) ?? ''
  return maxLength === undefined ? text : truncateText(text, maxLength)
}
