import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { createBuiltinAgent } from '../src/agent/builtin/builtin-agent.ts'
import { createInMemoryRun, webhookSource } from './support/in-memory-run.ts'

const readme = readFileSync(new URL('../../../packages/rules/README.md', import.meta.url), 'utf8')
const context = /^```text\n(.*?)\n```$/ms.exec(readme)?.[1] ?? ''
const agent = createBuiltinAgent()

/** The last two cells of each row whose both are code. */
const examples = [...readme.matchAll(/\| `([^`]+)` +\| `([^`]+)` +\|$/gm)].map(([, source = '', result = '']) => [
  source,
  result,
])

function ruledRun(rules: string, options: { context: string }) {
  const sources = [
    webhookSource('Big deals', { channel: '', cents: 0, customer: { name: '', city: '' } }),
    webhookSource('Order intake', { total: 0 }),
    webhookSource('Anything', {}),
  ]
  return createInMemoryRun({
    sources,
    files: [{ id: randomUUID(), name: 'rules.yaml', path: [], content: rules }],
    ...options,
  })
}

describe('the README of rules', () => {
  test('has examples', () => {
    expect(examples.length).toBeGreaterThan(15)
  })

  test.each(examples)('shows the result of %s', async (source, result) => {
    const run = ruledRun(`deliveries: [{ to: Anything, payload: { result: ${JSON.stringify(source)} } }]`, { context })
    await run.execute(agent)
    expect(run.sent.map(({ payload }) => payload)).toEqual([{ result: JSON.parse(result ?? '') as unknown }])
  })

  test('has a file that sends to one source or the other', async () => {
    const rules = /^```yaml\n(.*?)\n```$/ms.exec(readme)?.[1] ?? ''
    const large = ruledRun(rules, { context: 'Total: 250.50\nCustomer: Ada\nCustomer city: Rome' })
    await large.execute(agent)
    expect(large.sent.map(({ payload }) => payload)).toEqual([
      { channel: '#support', cents: 25_050, customer: { name: 'ADA', city: 'Rome' } },
    ])
    const small = ruledRun(rules, { context: 'Total: 99.99\nCustomer: Ada' })
    await small.execute(agent)
    expect(small.sent.map(({ payload }) => payload)).toEqual([{ total: 99.99 }])
    const none = ruledRun(rules, { context: 'Customer: Ada' })
    const error = (await none.execute(agent).catch((thrown: unknown) => thrown)) as { code: string; message: string }
    expect(readme).toContain(`\`${error.code}: ${error.message}\``)
  })
})
