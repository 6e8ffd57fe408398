import { readFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { DELIVERY_OUTCOMES } from '@workflow-service/contract'
import { agentSettings } from '../src/agent/agent-settings.ts'
import { createBuiltinAgent } from '../src/agent/builtin/builtin-agent.ts'
import { createInMemoryRun, webhookSource } from './support/in-memory-run.ts'

const readme = ['../README.md', '../src/agent/README.md']
  .map((path) => readFileSync(new URL(path, import.meta.url), 'utf8'))
  .join('\n')
const agent = createBuiltinAgent()

/** The fenced blocks of one kind, in order. */
function blocks(kind: string): string[] {
  return [...readme.matchAll(new RegExp(`^\`\`\`${kind}\\n(.*?)\\n\`\`\`$`, 'gms'))].map(([, text = '']) => text)
}

/** The rows of the table with that first heading. */
function rows(heading: string): string[][] {
  const [, table = ''] = new RegExp(`^\\| ${heading} +\\|.*\\n\\|[ |-]+\\n((?:\\|.*\\n)+)`, 'm').exec(readme) ?? []
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
  const error = await run.execute(agent).catch((thrown: unknown) => thrown)
  return error ? `${(error as { code: string }).code}: ${(error as Error).message}` : run.sent[0]?.payload
}

describe('the READMEs of the runner and its agents', () => {
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
      const error = (await run.execute(agent).catch((thrown: unknown) => thrown)) as { code: string } | undefined
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
    const error = (await run.execute(agent).catch((thrown: unknown) => thrown)) as { code: string; message: string }
    expect(readme).toContain(`\`${error.code}: ${error.message}\``)
  })

  test('lists every outcome of a delivery that fails a run', () => {
    const failed = DELIVERY_OUTCOMES.filter((outcome) => outcome !== 'accepted' && outcome !== 'in_flight')
    expect(rows('code').map(([code]) => code)).toEqual(
      expect.arrayContaining(failed.map((outcome) => `\`delivery_${outcome}\``)),
    )
  })

  test('lists every setting of the agent', () => {
    expect(rows('setting').map(([name]) => name)).toEqual(Object.keys(agentSettings).map((name) => `\`${name}\``))
  })
})

function isRefused([, , becomes]: readonly string[]): boolean {
  return becomes === 'refused'
}

function convert(example = '', text = ''): Promise<unknown> {
  return resultOf({ field: JSON.parse(example.slice(1, -1)) as unknown }, `field: ${text.slice(1, -1)}`)
}
