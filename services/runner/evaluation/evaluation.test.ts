import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import type { Agent } from '../src/agent/agent.ts'
import { BUILTIN_ONLY } from '../src/agent/agent-settings.ts'
import { createAgent } from '../src/agent/create-agent.ts'
import { RunError } from '../src/run-errors.ts'
import type { EvaluationCase } from './case-schema.ts'
import { type CaseResult, evaluate } from './evaluate.ts'
import { toSamplePayload } from '../test/support/sample-payload.ts'
import { readCases } from './read-cases.ts'
import { listWorstMistakes, toFigures } from './report.ts'
import { createPastAgent } from './run-case.ts'

const cases = readCases(join(import.meta.dirname, 'cases/*.json'))

const base = mkdtempSync(join(tmpdir(), 'evaluation-'))
afterAll(() => rmSync(base, { recursive: true }))

/** An agent that does what the case expects. */
function perfectAgent({ expect: { status, error = [], deliveries }, sources, context }: EvaluationCase): Agent {
  const examples = new Map(sources.map(({ name, example }) => [name, example]))
  const sent = deliveries.map(({ source, payload }) => {
    return { source, payload: toSamplePayload(payload, examples.get(source)) as Record<string, unknown> }
  })
  const sendAll = createPastAgent({ context, sent })
  return async (run) => {
    await sendAll(run)
    if (status === 'failed') throw new RunError(error[0] ?? '', 'As the case expects')
  }
}

describe('the cases', () => {
  test.each([
    ['is not JSON', () => '{', /bad\.json: .*JSON/u],
    [
      'lacks a field',
      (entry: object) => [{ ...entry, expect: { status: 'succeeded' } }],
      /orders-json-object, expect: must have required property 'deliveries'/u,
    ],
    ['has an id twice', (entry: object) => [entry, entry], /the id orders-json-object is also in/u],
    [
      'names an unknown source',
      (entry: object) => [
        { ...entry, expect: { status: 'succeeded', deliveries: [{ source: 'Nowhere', payload: {} }] } },
      ],
      /orders-json-object, there is no source Nowhere/u,
    ],
    [
      'has a matcher that does not exist',
      (entry: object) => [
        {
          ...entry,
          expect: { status: 'succeeded', deliveries: [{ source: 'Order intake', payload: { total: { $about: 5 } } }] },
        },
      ],
      /expect\.deliveries\.0: \{"\$about":5\} is not a matcher/u,
    ],
  ])('are refused with a clear error if a file %s', (_title, toContent, message) => {
    const folder = mkdtempSync(join(base, 'cases-'))
    const content = toContent(cases.find(({ id }) => id === 'orders-json-object')!)
    writeFileSync(join(folder, 'bad.json'), typeof content === 'string' ? content : JSON.stringify(content))
    expect(() => readCases(join(folder, '*.json'))).toThrow(message)
  })
})

test('an agent that does what the cases expect reaches 100 % of them', async () => {
  const results = await evaluate({ cases, agentFor: perfectAgent })
  expect(listWorstMistakes(results, 'perfect')).toEqual([])
  expect(toFigures(results)).toMatchObject({
    right: cases.length,
    fields: { share: 1, invented: 0 },
    wrongSends: 0,
    emptiedSends: 0,
    obeyed: { count: 0 },
  })
})

describe('the built-in agent', () => {
  let results: CaseResult[]

  beforeAll(async () => {
    results = await evaluate({ cases, agentFor: () => createAgent(BUILTIN_ONLY) })
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

describe('a report', () => {
  const twoCases = cases.slice(0, 2)

  test('counts repeats that sent different payloads', async () => {
    const silent: Partial<EvaluationCase> = { expect: { status: 'succeeded', deliveries: [] } }
    const agentFor = (entry: EvaluationCase, repeat: number) =>
      perfectAgent(repeat === 2 && entry === twoCases[0] ? { ...entry, ...silent } : entry)
    expect(toFigures(await evaluate({ cases: twoCases, repeats: 2, agentFor })).agreement).toBe(0.5)
  })
})
