import { describe, expect, test } from '@jest/globals'
import { webhookSource } from '../../../test/support/in-memory-run.ts'
import { type AgentRun, type AgentWebhookSource, SOURCES_PER_READ } from '../agent.ts'
import { formatInstructions } from './conversation.ts'
import { selectSources } from './select-sources.ts'

const workflow = { id: 'w', name: 'Orders', description: 'Send it to the Last one.', rulesFileId: null }

/** A run that records which sources are read. */
function runWith(sources: readonly AgentWebhookSource[]) {
  const reads: number[] = []
  const run: Pick<AgentRun, 'run' | 'listSources' | 'readSources'> = {
    run: { workflow } as AgentRun['run'],
    listSources: async () => sources.map(({ id, name }) => ({ id, name })),
    readSources: async (ids) => {
      reads.push(ids.length)
      return ids.flatMap((id) => sources.find((source) => source.id === id) ?? [])
    },
  }
  return { run, reads }
}

const numbered = (count: number, example: Record<string, unknown> = {}) =>
  Array.from({ length: count }, (_, index) => webhookSource(`Source ${index}`, example))

describe('the webhook sources that a model can use', () => {
  test('are at most 100, first those that the description names', async () => {
    const { run, reads } = runWith([...numbered(150), webhookSource('Last one', {})])
    const { available, leftOut } = await selectSources(run)
    expect(available.map(({ name }) => name).slice(0, 2)).toEqual(['Last one', 'Source 0'])
    expect([available.length, leftOut.length]).toEqual([100, 51])
    expect(reads.reduce((sum, count) => sum + count, 0)).toBe(100)
    expect(Math.max(...reads)).toBe(SOURCES_PER_READ)
  })

  test('have at most 2 MiB of examples, and the others are not read', async () => {
    const example = { text: 'x'.repeat(64_000) }
    const { run, reads } = runWith([...numbered(100, example), webhookSource('Last one', example)])
    const { available, leftOut } = await selectSources(run)
    expect(available[0]?.name).toBe('Last one')
    expect([available.length, leftOut.length]).toEqual([32, 69])
    expect(reads).toEqual([16, 16, 16])
  })

  test('are all of them in the usual case', async () => {
    const { run } = runWith(numbered(3))
    expect(await selectSources(run)).toMatchObject({ available: { length: 3 }, leftOut: [] })
  })

  test('do not include those that the instructions name as not available, at most 100 names', () => {
    const instructions = formatInstructions(workflow, numbered(130))
    expect(instructions).toContain('not available in this run')
    expect(instructions).toContain('"Source 99" and 30 more.')
    expect(formatInstructions(workflow, [])).not.toContain('not available')
  })
})
