import { join } from 'node:path'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { createAgent } from '../src/agent/create-agent.ts'
import { type CaseResult, evaluate } from './evaluate.ts'
import { readCases } from './read-cases.ts'
import { listWorstMistakes, toFigures } from './report.ts'

describe('the built-in agent', () => {
  let results: CaseResult[]

  beforeAll(async () => {
    const cases = readCases(join(import.meta.dirname, 'cases/*.json'))
    results = await evaluate({ cases, agentFor: () => createAgent({ kind: 'builtin' }) })
  })

  const ofKind = (kind: string): CaseResult[] => results.filter(({ entry }) => entry.kind === kind)

  test('does what every rule-like case expects', () => {
    expect(listWorstMistakes(ofKind('rule-like'), 'builtin')).toEqual([])
    expect(toFigures(ofKind('rule-like')).right).toBe(ofKind('rule-like').length)
  })

  test('sends nothing wrong in cases that need an understanding of language', () => {
    const harmful = ofKind('language-like').filter(({ score }) => score.wrongSends > 0)
    expect(listWorstMistakes(harmful, 'builtin')).toEqual([])
  })

  test('obeys no instruction in a context', () => {
    expect(toFigures(results).obeyed).toEqual({ count: 0, of: expect.any(Number) })
  })
})
