import { isJsonObject } from '@workflow-service/contract'
import { isEmpty, isMatch, isMatcher, isUnscored } from './matchers.ts'

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
  if (expected === undefined) return countUnexpected(actual, path, score)
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
  const isStructure = typeof expected === 'object' && expected !== null && !isMatcher(expected)
  const isRight = isStructure ? JSON.stringify(actual) === JSON.stringify(expected) : isMatch(expected, actual)
  if (isRight) score.correct += 1
  else addMistake(isEmpty(actual) ? 'missed' : 'wrong', path, JSON.stringify(expected), actual, score)
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
