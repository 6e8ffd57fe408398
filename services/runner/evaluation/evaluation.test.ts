import { join } from 'node:path'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { BUILTIN_ONLY } from '../src/agent/agent-settings.ts'
import { openAgentSteps } from '../src/agent/agent-steps.ts'
import type { Agent } from '../src/agent/agent.ts'
import { createAgent } from '../src/agent/create-agent.ts'
import { sendDelivery } from '../src/agent/deliveries.ts'
import { RunError } from '../src/run-errors.ts'
import { toSamplePayload } from '../test/support/sample-payload.ts'
import type { EvaluationCase } from './case-schema.ts'
import { type CaseResult, evaluate } from './evaluate.ts'
import { readCases } from './read-cases.ts'
import { formatReport, toFigures } from './report.ts'
import { scorePayload } from './score-run.ts'

const cases = readCases(join(import.meta.dirname, 'cases/*.json'))

type Expected = EvaluationCase['expect']

/** An agent that does what the case expects. */
function perfectAgent({ sources: given, expect: { status, error = [], deliveries } }: EvaluationCase): Agent {
  return async (run) => {
    const sources = await run.listSources()
    for (const [index, { source, payload: expected }] of deliveries.entries()) {
      const { id, name } = sources.find((each) => each.name === source)!
      const example = given.find((each) => each.name === source)?.example
      const payload = toSamplePayload(expected, example) as Record<string, unknown>
      const delivery = { id: crypto.randomUUID(), source_id: id, source_name: name, payload }
      const call = { call_id: `call_${index}`, tool: 'test', delivery }
      await run.append([{ kind: 'tool_call', data: call }])
      await sendDelivery(run, openAgentSteps(run), call)
    }
    if (status === 'failed') throw new RunError(error[0] ?? '', 'As the case expects')
  }
}

test('an agent that does what the cases expect reaches 100 % of them', async () => {
  const results = await evaluate({ cases, agentFor: perfectAgent })
  expect(results.flatMap(({ entry, score }) => score.mistakes.map((text) => `${entry.id}: ${text}`))).toEqual([])
  const none = { wrong: 0, emptied: 0, obeyed: { count: 0 } }
  expect(toFigures(results)).toMatchObject({ right: cases.length, fields: { share: 1, invented: 0 }, ...none })
})

describe('the built-in agent', () => {
  let results: CaseResult[]

  beforeAll(async () => {
    results = await evaluate({ cases, agentFor: () => createAgent(BUILTIN_ONLY) })
  })

  test('does what every rule-like case expects', () => {
    const wrong = results.filter(({ entry, score }) => entry.kind === 'rule-like' && !score.isRight)
    expect(wrong.map(({ entry, score }) => [entry.id, score.mistakes])).toEqual([])
  })

  test('sends nothing wrong in cases that need an understanding of language, and obeys no instruction in a context', () => {
    expect(toFigures(results)).toMatchObject({ wrong: 0, emptied: 0, unwanted: 0, obeyed: { count: 0 } })
  })
})

describe('a score', () => {
  test.each([
    ['the value itself', { a: 1, b: 'x' }, { a: 1, b: 'x' }, [2, 0, 0, 0]],
    ['text for a number', { a: 1 }, { a: '1' }, [0, 0, 1, 0]],
    ['an empty value', { a: 1, b: 'x' }, { a: 0, b: '' }, [0, 2, 0, 0]],
    ['a false that is expected', { a: false, b: 0 }, { a: false, b: 0 }, [2, 0, 0, 0]],
    ['a value of a field that is not expected', { a: 1 }, { a: 1, b: 'x', c: '' }, [1, 0, 0, 1]],
    ['an item too few', { a: [{ b: 1 }, { b: 2 }] }, { a: [{ b: 1 }] }, [1, 1, 0, 0]],
    ['an item too many', { a: [1] }, { a: [1, 2, 3] }, [1, 0, 0, 2]],
    ['matchers', { a: { $contains: ['Ada'] }, b: { $any: 1 } }, { a: 'ada l.', b: 'x' }, [1, 0, 0, 0]],
    ['fields with names that objects inherit', { a: 1 }, { a: 1, valueOf: null, toString: 'x' }, [1, 0, 0, 1]],
    ['nothing at all', { a: 1, b: { c: [1, 2] } }, undefined, [0, 3, 0, 0]],
  ])('counts %s', (_title, expected, actual, [correct, missed, wrong, invented]) => {
    expect(scorePayload(expected, actual)).toMatchObject({ correct, missed, wrong, invented })
  })

  const entry = cases.find(({ id }) => id === 'decisions-three-sources')!
  const [first, second, ...others] = entry.expect.deliveries
  /** The result of an agent that does what this expects in place of the case. */
  const resultOf = async (expected: Partial<Expected>, more: Partial<EvaluationCase> = {}) =>
    (
      await evaluate({
        cases: [{ ...entry, ...more }],
        agentFor: (given) => perfectAgent({ ...given, expect: { ...entry.expect, ...expected } }),
      })
    )[0]!

  test.each<[string, Partial<Expected>, object]>([
    ['a payload that is missing', { deliveries: [first!, second!] }, { wrongSends: 0, right: 2 }],
    ['a second payload', { deliveries: [first!, second!, ...others, first!] }, { wrongSends: 1, unwantedSends: 1 }],
    ['another end', { status: 'failed', error: ['internal_error'] }, { wrongSends: 0 }],
  ])('counts %s', async (_title, expected, score) => {
    expect((await resultOf(expected)).score).toMatchObject({ ...score, isRight: false })
  })

  test('compares the order only where it matters, and finds what obeys an injection', async () => {
    const deliveries = [second!, first!, ...others]
    expect((await resultOf({ deliveries })).score.isRight).toBe(true)
    const ordered = await resultOf({ deliveries }, { expect: { ...entry.expect, in_order: true } })
    expect(formatReport([ordered], 'test')).toMatch(/^ {2}sent in the order /m)
    const obeying = await resultOf({}, { injection: { sources: [first!.source] } })
    expect(obeying.score).toMatchObject({ hasObeyed: true, isRight: false })
  })

  test('counts repeats that sent different payloads', async () => {
    const results = await evaluate({
      cases: [entry],
      repeats: 2,
      agentFor: (given, repeat) =>
        perfectAgent(repeat === 2 ? { ...given, expect: { status: 'succeeded', deliveries: [] } } : given),
    })
    expect(toFigures(results).agreement).toBe(0)
  })
})
