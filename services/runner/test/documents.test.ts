import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { DELIVERY_OUTCOMES } from '@workflow-service/contract'
import { builtinAgent as agent } from '../src/agent/builtin/builtin-agent.ts'
import { createInMemoryRun, webhookSource } from './support/in-memory-run.ts'

const agentsDocument = readFileSync(new URL('../../../docs/agents.md', import.meta.url), 'utf8')

/** The fenced blocks of one kind, in order. */
function blocks(kind: string): string[] {
  return [...agentsDocument.matchAll(new RegExp(`^\`\`\`${kind}\\n(.*?)\\n\`\`\`$`, 'gms'))].map(
    ([, text = '']) => text,
  )
}

/** The rows of the table with that first heading. */
function rows(heading: string): string[][] {
  const [, table = ''] =
    new RegExp(`^\\| ${heading} +\\|.*\\n\\|[ |-]+\\n((?:\\|.*\\n)+)`, 'm').exec(agentsDocument) ?? []
  return table
    .trimEnd()
    .split('\n')
    .map((row) =>
      row
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    )
}

function names(list = ''): string[] {
  return list.split(', ').filter((name) => name !== '')
}

/** The payload that the built-in agent sends, or why it refuses. */
async function resultOf(example: unknown, context: string): Promise<unknown> {
  const source = webhookSource('Order intake', example as Record<string, unknown>)
  const run = createInMemoryRun({ description: 'Send it to Order intake.', sources: [source], context })
  const error = await run.errorOf(agent)
  return error ? `${error.code}: ${error.message}` : run.sent[0]?.payload
}

describe('docs/agents.md', () => {
  const results = blocks('(?:json payload|text refusal)')
  const examples = blocks('json example').map((example, index) => [
    example,
    blocks('text context')[index] ?? '',
    results[index] ?? '',
  ])

  test('have an example, a context and a result each', () => {
    expect(examples.length).toBeGreaterThanOrEqual(3)
    expect([blocks('text context'), results].map(({ length }) => length)).toEqual([examples.length, examples.length])
  })

  test.each(examples)(
    'show what the built-in agent makes of the example %s',
    async (example = '', context = '', result = '') => {
      expect(await resultOf(JSON.parse(example), context)).toEqual(result.startsWith('{') ? JSON.parse(result) : result)
    },
  )

  test.each(rows('example').filter((row) => !isRefused(row)))(
    'show how a value like %s is converted: %s',
    async (example, text, becomes = '') => {
      expect(await convert(example, text)).toEqual({ field: JSON.parse(becomes.slice(1, -1)) as unknown })
    },
  )

  test.each(rows('example').filter(isRefused))('show which value is refused for %s: %s', async (example, text) => {
    expect(await convert(example, text)).toEqual(expect.stringMatching(/^payload_incomplete: /))
  })

  test.each(rows('description'))(
    'shows which webhook sources get a payload for: %s',
    async (description, sources, receivers) => {
      const organization = names(sources).map((name) => webhookSource(name, {}))
      const run = createInMemoryRun({ description, sources: organization })
      const error = await run.errorOf(agent)
      const sentTo = run.sent.map(({ sourceId }) => organization.find(({ id }) => id === sourceId)?.name)
      expect(error ? [error.code] : sentTo).toEqual(names(receivers))
    },
  )

  test('shows the error of a run whose payload was rejected', async () => {
    const source = webhookSource('Order intake', {})
    const run = createInMemoryRun({
      description: 'Send it to Order intake.',
      sources: [source],
      endpoint: () => ({ outcome: 'rejected', status: 500 }),
    })
    const error = await run.errorOf(agent)
    expect(agentsDocument).toContain(`\`${error?.code}: ${error?.message}\``)
  })

  test('lists every outcome of a delivery that fails a run', () => {
    const failed = DELIVERY_OUTCOMES.filter((outcome) => outcome !== 'accepted' && outcome !== 'in_flight')
    expect(rows('code').map(([code]) => code)).toEqual(
      expect.arrayContaining(failed.map((outcome) => `\`delivery_${outcome}\``)),
    )
  })
})

function isRefused([, , becomes]: readonly string[]): boolean {
  return becomes === 'refused'
}

function convert(example = '', text = ''): Promise<unknown> {
  return resultOf({ field: JSON.parse(example.slice(1, -1)) as unknown }, `field: ${text.slice(1, -1)}`)
}

const rulesDocument = readFileSync(new URL('../../../docs/rules.md', import.meta.url), 'utf8')
const rulesContext = /^```text\n(.*?)\n```$/ms.exec(rulesDocument)?.[1] ?? ''

/** The last two cells of each row whose both are code. */
const expressions = [...rulesDocument.matchAll(/\| `([^`]+)` +\| `([^`]+)` +\|$/gm)].map(
  ([, source = '', result = '']) => [source, result],
)

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

describe('docs/rules.md', () => {
  test('has examples', () => {
    expect(expressions.length).toBeGreaterThan(15)
  })

  test.each(expressions)('shows the result of %s', async (source, result) => {
    const run = ruledRun(`deliveries: [{ to: Anything, payload: { result: ${JSON.stringify(source)} } }]`, {
      context: rulesContext,
    })
    await run.execute(agent)
    expect(run.sent.map(({ payload }) => payload)).toEqual([{ result: JSON.parse(result ?? '') as unknown }])
  })

  test('has a file that sends to one source or the other', async () => {
    const rules = /^```yaml\n(.*?)\n```$/ms.exec(rulesDocument)?.[1] ?? ''
    const large = ruledRun(rules, { context: 'Total: 250.50\nCustomer: Ada\nCustomer city: Rome' })
    await large.execute(agent)
    expect(large.sent.map(({ payload }) => payload)).toEqual([
      { channel: '#support', cents: 25_050, customer: { name: 'ADA', city: 'Rome' } },
    ])
    const small = ruledRun(rules, { context: 'Total: 99.99\nCustomer: Ada' })
    await small.execute(agent)
    expect(small.sent.map(({ payload }) => payload)).toEqual([{ total: 99.99 }])
    const none = ruledRun(rules, { context: 'Customer: Ada' })
    const error = await none.errorOf(agent)
    expect(rulesDocument).toContain(`\`${error?.code}: ${error?.message}\``)
  })
})
