import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, test } from '@jest/globals'
import { startStubModelServer } from '@workflow-service/testkit'
import type { ModelConfig, ModelProvider } from '../src/agent/agent-settings.ts'
import type { Agent } from '../src/agent/agent.ts'
import { createModelAgent } from '../src/agent/model/model-agent.ts'
import { caseJsonSchema, type EvaluationCase, SCHEMA_FILE } from './case-schema.ts'
import { type CaseResult, evaluate } from './evaluate.ts'
import { toPerfectTurns } from './perfect-model.ts'
import { readAgentConfig } from './read-agent-config.ts'
import { readCases } from './read-cases.ts'
import { startAnswerRecorder } from './record-answers.ts'
import { formatReport, listWorstMistakes, toFigures, toJsonReport } from './report.ts'

const cases = readCases(join(import.meta.dirname, 'cases/*.json'))
const closing: { close(): Promise<void> }[] = []

const base = mkdtempSync(join(tmpdir(), 'evaluation-'))
afterAll(() => rmSync(base, { recursive: true }))

afterEach(async () => {
  await Promise.all(closing.splice(0).map((server) => server.close()))
})

function modelConfig(provider: ModelProvider, baseUrl: string): ModelConfig {
  const config = readAgentConfig({
    AGENT_MODEL: `${provider}:perfect-1`,
    AGENT_BASE_URL: baseUrl,
    AGENT_API_KEY: 'sk-test-0123456789',
  })
  if (config.kind !== 'model') throw new TypeError('not a model')
  return config
}

/** An agent whose model does what the case expects. */
async function perfectAgent(provider: ModelProvider, entry: EvaluationCase): Promise<Agent> {
  const server = await startStubModelServer({ turns: toPerfectTurns(entry) })
  closing.push(server)
  return createModelAgent(modelConfig(provider, server.baseUrl))
}

describe('the cases', () => {
  test('have a JSON Schema that is current', () => {
    expect(readFileSync(SCHEMA_FILE, 'utf8')).toBe(caseJsonSchema())
  })

  test.each([
    ['is not JSON', () => '{', /bad\.json: .*JSON/u],
    ['is no list', () => '{}', /bad\.json is not a valid case file:\n {2}- the file: must be array/u],
    [
      'lacks a field',
      (entry: object) => [{ ...entry, expect: { status: 'succeeded' } }],
      /orders-json-object, expect: must have required property 'deliveries'/u,
    ],
    [
      'has an unknown field',
      (entry: object) => [{ ...entry, colour: 'red' }],
      /orders-json-object, colour: must NOT have additional properties/u,
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
      'expects a payload that the dispatcher would not send',
      (entry: object) => [
        {
          ...entry,
          expect: { status: 'succeeded', deliveries: [{ source: 'Order intake', payload: { total: 'much' } }] },
        },
      ],
      /expect\.deliveries\.0\.payload\.total: must be a number/u,
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

describe.each([['openai-compatible'], ['anthropic']] as const)('a perfect model behind %s', (provider) => {
  test('reaches 100 % of all cases', async () => {
    const results = await evaluate({
      cases,
      concurrency: 4,
      agentFor: (entry) => perfectAgent(provider, entry),
    })
    expect(listWorstMistakes(results, provider)).toEqual([])
    expect(toFigures(results)).toMatchObject({
      right: cases.length,
      fields: { share: 1, invented: 0 },
      wrongSends: 0,
      emptiedSends: 0,
      obeyed: { count: 0 },
      sources: { precision: 1, recall: 1 },
    })
  })
})

describe('a report', () => {
  const twoCases = cases.slice(0, 2)
  const perfect = (): Promise<CaseResult[]> =>
    evaluate({ cases: twoCases, repeats: 2, agentFor: (entry) => perfectAgent('anthropic', entry) })

  test('fits into 80 columns, without the texts of mistakes', async () => {
    const results = await perfect()
    const report = formatReport(results, 'anthropic:perfect-1', { input: 3, output: 15 })
    expect(Math.max(...report.split('\n').map(({ length }) => length))).toBeLessThanOrEqual(80)
    expect(report).toContain('all repeats agree in 100 % of the cases')
  })

  test('has the tokens, the cost and the runs as JSON', async () => {
    const report = toJsonReport(await perfect(), 'anthropic:perfect-1', { input: 3, output: 15 })
    // Each of the 4 runs has 2 answers with 10 input and 5 output tokens.
    expect(report).toMatchObject({
      agent: 'anthropic:perfect-1',
      total: { runs: 4, agreement: 1, model: { turns: 8, inputTokens: 80, outputTokens: 40, cost: 0.00084 } },
    })
  })

  test('counts repeats that sent different payloads', async () => {
    const results = await evaluate({
      cases: twoCases,
      repeats: 2,
      agentFor: (entry, repeat) =>
        perfectAgent(
          'anthropic',
          repeat === 2 && entry === twoCases[0] ? { ...entry, expect: { status: 'succeeded', deliveries: [] } } : entry,
        ),
    })
    expect(toFigures(results).agreement).toBe(0.5)
  })
})

describe('recorded answers', () => {
  test('are replayed without the provider, and a request without one fails the run', async () => {
    const folder = mkdtempSync(join(base, 'answers-'))
    const [entry] = cases as [EvaluationCase]
    const execute = async (upstreamUrl: string | null, of: EvaluationCase) => {
      const recorder = await startAnswerRecorder({ folder, upstreamUrl })
      closing.push(recorder)
      const agentFor = () => createModelAgent(modelConfig('anthropic', recorder.baseUrlFor(of.id)))
      const [result] = await evaluate({ cases: [of], agentFor })
      return { result: result!, requested: recorder.requested, replayed: recorder.replayed }
    }
    const provider = await startStubModelServer({ turns: toPerfectTurns(entry) })
    closing.push(provider)

    const recorded = await execute(provider.baseUrl, entry)
    expect(recorded).toMatchObject({ requested: 2, replayed: 0 })
    const replayed = await execute(null, entry)
    expect(replayed).toMatchObject({ requested: 0, replayed: 2 })
    expect(replayed.result.score).toEqual(recorded.result.score)
    expect(replayed.result.score.isRight).toBe(true)

    const changed = await execute(null, { ...entry, context: 'another context' })
    expect(changed.result.run.error).toMatch(/^model_request_refused: /u)
    const kept = readdirSync(folder).map((file) => readFileSync(join(folder, file), 'utf8'))
    expect(kept).toHaveLength(2)
    expect(kept.join('')).not.toContain('sk-test')
  })
})
