import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { startStubModelServer } from '@workflow-service/testkit'
import { useTestFolder } from '@workflow-service/testkit/use-test-folder'
import type { EvaluationCase } from './case-schema.ts'
import { toSamplePayload } from '../test/support/sample-payload.ts'
import { readCases } from './read-cases.ts'
import { runEvaluate } from './run-evaluate.ts'

async function evaluate(args: readonly string[], env: Record<string, string> = {}) {
  let stdout = ''
  let stderr = ''
  const code = await runEvaluate(args, env, {
    stdout: (text) => void (stdout += text),
    stderr: (text) => void (stderr += text),
  })
  return { code, stdout, stderr }
}

const base = useTestFolder()

function writeCases(...entries: readonly unknown[]): string {
  return write(JSON.stringify(entries))
}

function write(text: string): string {
  const file = join(mkdtempSync(join(base, 'cases-')), 'cases.json')
  writeFileSync(file, text)
  return file
}

const cases = readCases(join(import.meta.dirname, 'cases/structured.json'))
const simple = cases.find(({ id }) => id === 'orders-json-object')!

test('pnpm evaluate exits with 0 if every run is right, and with 1 if not', async () => {
  const unlike: EvaluationCase = { ...simple, expect: { status: 'succeeded', deliveries: [] } }
  const [right, wrong] = await Promise.all([
    evaluate(['--cases', writeCases(simple)]),
    evaluate(['--cases', writeCases(unlike)]),
  ])
  expect(right).toMatchObject({ code: 0, stderr: '' })
  expect(wrong).toMatchObject({ code: 1, stderr: '' })
  expect(wrong?.stdout).toContain('orders-json-object\n  Order intake: unexpected payload')
})

const expectPayload = (payload: Record<string, unknown>): EvaluationCase => ({
  ...simple,
  expect: { status: 'succeeded', deliveries: [{ source: simple.sources[0]!.name, payload }] },
})
const models = JSON.stringify({
  default: 'fast',
  models: { fast: { model: 'openai:m', key: 'KEY' } },
})

test.each<[string, string[], Record<string, string>, string]>([
  ['an option', ['--repeat', 'often'], {}, '--repeat must be a whole number'],
  ['a case', ['--cases', writeCases({ id: 'no-case' })], {}, "/0 must have required property 'kind'"],
  ['a file', ['--cases', write('[')], {}, 'cases.json: Unexpected end of JSON input'],
  [
    'a matcher',
    ['--cases', writeCases(expectPayload({ lines: [{ total: { $about: 5 } }] }))],
    {},
    'cases.json: orders-json-object: deliveries.0.lines.0.total is not a matcher',
  ],
  [
    'the value of a matcher',
    ['--cases', writeCases(expectPayload({ name: { $contains: 'a' } }))],
    {},
    'deliveries.0.name is not a matcher',
  ],
  ['a report', ['--json', join(base, 'none', 'report.json')], {}, '--json: ENOENT'],
  ['a folder', ['--record', join(write('[]'), 'answers')], {}, '--record: E'],
  ['a key', ['--agent', 'anthropic:NAME'], {}, 'AGENT_API_KEY'],
  ['an agent', ['--agent', 'slow'], { AGENT_MODELS: write(models), KEY: 'k' }, 'builtin or one of AGENT_MODELS: fast'],
])('pnpm evaluate exits with 2 for %s that is wrong', async (_what, args, env, message) => {
  expect(await evaluate(args, env)).toMatchObject({ code: 2, stderr: expect.stringContaining(message) })
})

test.each([
  ['anthropic:stub', { prices: { input: 3, output: 15 } }],
  ['bedrock:stub', { prices: { input: 3, output: 15 }, aws_region: 'eu-central-1', streaming: true }],
])(
  'pnpm evaluate records the answers of %s without its key, and replays them without the provider',
  async (name, of) => {
    const folder = mkdtempSync(join(base, 'answers-'))
    const report = join(base, 'report.json')
    const [{ payload }, { example }] = [simple.expect.deliveries[0]!, simple.sources[0]!]
    const send = { name: 'send_to_order_intake', arguments: toSamplePayload(payload, example) }
    const end = { name: 'end_run', arguments: { status: 'done', reason: 'Sent.' } }
    await using server = await startStubModelServer({ turns: [{ toolCalls: [send] }, { toolCalls: [end] }] })
    const model = { model: name, base_url: server.baseUrl, key: 'KEY', ...of }
    const AGENT_MODELS = join(base, 'models.json')
    writeFileSync(AGENT_MODELS, JSON.stringify({ default: 'stub', currency: 'USD', models: { stub: model } }))
    const env = { AGENT_MODELS, KEY: 'sk-test-0123456789' }
    const evaluateModel = (entry: EvaluationCase, ...more: string[]) =>
      evaluate(['--agent', 'stub', '--cases', writeCases(entry), '--record', folder, ...more], env)
    const recorded = await evaluateModel(simple, '--json', report)
    expect(recorded).toMatchObject({ code: 0, stderr: '0 answers replayed, 2 requested\n' })
    expect(JSON.parse(readFileSync(report, 'utf8'))).toMatchObject({
      agent: 'stub',
      total: { runs: 1, right: 1, model: { turns: 2, inputTokens: 20, outputTokens: 10, costMicros: 210 } },
    })
    const kept = readdirSync(folder).map((file) => readFileSync(join(folder, file), 'utf8'))
    expect(kept).toHaveLength(2)
    expect(kept.join('')).not.toContain('sk-test')

    const replayed = await evaluateModel(simple, '--replay')
    expect(replayed).toMatchObject({ code: 0, stderr: '2 answers replayed, 0 requested\n' })
    const changed = await evaluateModel({ ...simple, context: 'another context' }, '--replay')
    expect(changed).toMatchObject({ code: 1, stdout: expect.stringContaining('model_request_refused') })
    expect(server.requests).toHaveLength(2)
  },
)
