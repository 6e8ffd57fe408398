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

describe('the READMEs of the runner and its agents', () => {
  const payloads = blocks('json payload')
  const examples = blocks('json example').map((example, index) => [
    example,
    blocks('text context')[index] ?? '',
    payloads[index] ?? '',
  ])

  test('has an example, a context and a payload each', () => {
    expect(examples.length).toBeGreaterThanOrEqual(3)
    expect([blocks('text context'), payloads].map(({ length }) => length)).toEqual([examples.length, examples.length])
  })

  test.each(examples)(
    'shows the payload that the built-in agent builds from the example %s',
    async (example, context, payload) => {
      const source = webhookSource('Order intake', JSON.parse(example ?? '') as Record<string, unknown>)
      const run = createInMemoryRun({ description: 'Order intake', sources: [source], context })
      await run.execute(agent)
      expect(run.sent.map((delivery) => delivery.payload)).toEqual([JSON.parse(payload ?? '')])
    },
  )

  test.each(rows('description'))(
    'shows which webhook sources get a payload for: %s',
    async (description, sources, receivers) => {
      const organization = names(sources).map((name) => webhookSource(name, {}))
      const run = createInMemoryRun({ description, sources: organization })
      await run.execute(agent)
      const sentTo = run.sent.map(({ sourceId }) => organization.find(({ id }) => id === sourceId)?.name)
      expect(sentTo).toEqual(names(receivers))
    },
  )

  test('shows the error of a run whose payload was rejected', async () => {
    const source = webhookSource('Order intake', {})
    const run = createInMemoryRun({
      description: 'Order intake',
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
