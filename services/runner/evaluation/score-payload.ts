import { isJsonObject } from '@workflow-service/contract'
import { anyOrderItems, isAbsent, isEmpty, isMatcher, isUnscored, toMatcher } from './matchers.ts'

/** Fields of one payload, or of several. A field is a value that is neither an object nor a list. */
export interface FieldScore {
  /** Fields with the expected value. */
  correct: number
  /** Expected fields that are left out or empty. */
  missed: number
  /** Expected fields with another value. */
  wrong: number
  /** Fields with a value where none is expected. */
  invented: number
}

export interface FieldMistake {
  readonly kind: 'missed' | 'wrong' | 'invented'
  /** Such as `lines.0.price`. */
  readonly field: string
  readonly expected: string
  readonly actual: string
}

export interface PayloadScore extends FieldScore {
  readonly mistakes: readonly FieldMistake[]
}

/** Compares a payload with the expected one, field by field. */
export function scorePayload(expected: unknown, actual: unknown): PayloadScore {
  const score = { correct: 0, missed: 0, wrong: 0, invented: 0, mistakes: [] as FieldMistake[] }
  compare(expected, actual, [], score)
  return score
}

export function addScores(scores: readonly FieldScore[]): FieldScore {
  const sum = (name: keyof FieldScore): number => scores.reduce((total, score) => total + score[name], 0)
  return { correct: sum('correct'), missed: sum('missed'), wrong: sum('wrong'), invented: sum('invented') }
}

type Score = FieldScore & { mistakes: FieldMistake[] }

function compare(expected: unknown, actual: unknown, path: readonly string[], score: Score): void {
  if (isUnscored(expected)) return
  if (isAbsent(expected)) return countUnexpected(actual, path, score)
  const items = anyOrderItems(expected)
  if (items) return compare(sortLike(items, actual), actual, path, score)
  if (Array.isArray(expected) && expected.length > 0) {
    const actualItems: unknown[] = Array.isArray(actual) ? actual : []
    const length = Math.max(expected.length, actualItems.length)
    for (let index = 0; index < length; index += 1) {
      compare(expected[index], actualItems[index], [...path, String(index)], score)
    }
    return
  }
  if (isJsonObject(expected) && !isMatcher(expected) && Object.keys(expected).length > 0) {
    const fields = isJsonObject(actual) ? actual : {}
    for (const name of new Set([...Object.keys(expected), ...Object.keys(fields)])) {
      compare(expected[name], fields[name], [...path, name], score)
    }
    return
  }
  compareField(expected, actual, path, score)
}

function compareField(expected: unknown, actual: unknown, path: readonly string[], score: Score): void {
  const isStructure = typeof expected === 'object' && expected !== null && !isMatcher(expected)
  const isCorrect = isStructure
    ? JSON.stringify(actual) === JSON.stringify(expected)
    : toMatcher(expected).matches(actual)
  if (isCorrect) score.correct += 1
  else {
    const description = isStructure ? JSON.stringify(expected) : toMatcher(expected).description
    addMistake(isEmpty(actual) ? 'missed' : 'wrong', path, description, actual, score)
  }
}

function countUnexpected(actual: unknown, path: readonly string[], score: Score): void {
  if (isEmpty(actual)) return
  if (typeof actual === 'object' && actual !== null) {
    for (const [name, value] of Object.entries(actual)) countUnexpected(value, [...path, name], score)
    return
  }
  addMistake('invented', path, 'nothing', actual, score)
}

function addMistake(
  kind: FieldMistake['kind'],
  path: readonly string[],
  expected: string,
  actual: unknown,
  score: Score,
): void {
  score[kind] += 1
  score.mistakes.push({ kind, field: path.join('.'), expected, actual: JSON.stringify(actual) ?? 'nothing' })
}

/** The expected items in the order in which the payload has them; those that it does not have are last. */
function sortLike(items: readonly unknown[], actual: unknown): unknown[] {
  const left = [...items]
  const sorted = (Array.isArray(actual) ? (actual as unknown[]) : []).map((value) => {
    const index = left.findIndex((item) => {
      const { missed, wrong, invented } = scorePayload(item, value)
      return missed + wrong + invented === 0
    })
    return index === -1 ? undefined : left.splice(index, 1)[0]
  })
  // Values without an equal item are compared with the items that are left.
  const filled = sorted.map((item) => item ?? left.shift())
  return [...filled, ...left]
}
