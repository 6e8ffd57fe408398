import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from '@jest/globals'
import { startStubModelServer } from '@workflow-service/testkit'
import type { EvaluationCase } from './case-schema.ts'
import { toPerfectTurns } from './perfect-model.ts'
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

const base = mkdtempSync(join(tmpdir(), 'evaluate-'))
afterAll(() => rmSync(base, { recursive: true }))

function writeCases(...entries: readonly unknown[]): string {
  const file = join(mkdtempSync(join(base, 'cases-')), 'cases.json')
  writeFileSync(file, JSON.stringify(entries))
  return file
}

const cases = readCases(join(import.meta.dirname, 'cases/structured.json'))
const simple = cases.find(({ id }) => id === 'orders-json-object')!

test('pnpm evaluate exits with 0, 1 or 2, as wf does', async () => {
  const unlike: EvaluationCase = { ...simple, expect: { status: 'succeeded', deliveries: [] } }
  const [right, wrong, usage, badFile, badAgent] = await Promise.all([
    evaluate(['--cases', writeCases(simple)]),
    evaluate(['--cases', writeCases(unlike)]),
    evaluate(['--repeat', 'often']),
    evaluate(['--cases', writeCases({ id: 'no-case' })]),
    evaluate(['--agent', 'anthropic:NAME']),
  ])
  expect(right).toMatchObject({ code: 0, stderr: '' })
  expect(wrong).toMatchObject({ code: 1, stderr: '' })
  expect(wrong?.stdout).toContain('orders-json-object (unexpected): Order intake: unexpected payload')
  expect(usage).toMatchObject({ code: 2, stderr: expect.stringContaining('--repeat must be a whole number') })
  expect(badFile).toMatchObject({ code: 2, stderr: expect.stringContaining('no-case: must have required property') })
  expect(badAgent).toMatchObject({ code: 2, stderr: expect.stringContaining('AGENT_API_KEY') })
})

test('pnpm evaluate records the answers of a model and replays them', async () => {
  const folder = mkdtempSync(join(base, 'answers-'))
  const report = join(folder, '..', `${folder.split('/').at(-1)}.json`)
  const file = writeCases(simple)
  const server = await startStubModelServer({ turns: toPerfectTurns(simple) })
  try {
    const options = ['--agent', 'openai-compatible:stub', '--cases', file, '--record', folder]
    const env = { AGENT_BASE_URL: server.baseUrl }
    const recorded = await evaluate([...options, '--price', '1:2'], env)
    expect(recorded).toMatchObject({ code: 0, stderr: '0 answers replayed, 2 requested\n' })
    const replayed = await evaluate([...options, '--replay', '--json', report], env)
    expect(replayed).toMatchObject({ code: 0, stderr: '2 answers replayed, 0 requested\n' })
    expect(JSON.parse(readFileSync(report, 'utf8'))).toMatchObject({
      total: { runs: 1, right: 1, model: { turns: 2 } },
    })
  } finally {
    await server.close()
  }
})
