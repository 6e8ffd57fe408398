import { describe, expect, test } from '@jest/globals'
import { webhookSource } from '../../../test/support/in-memory-run.ts'
import { type AgentRun, type AgentWebhookSource, SOURCES_PER_READ } from '../agent.ts'
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
  test('are of many only those that the description names, and those that searches found', async () => {
    const sources = [...numbered(150), webhookSource('Last one', {})]
    const { run, reads } = runWith(sources)
    const { available, leftOut } = await selectSources(run, [sources[7]!.id, 'deleted'])
    expect(available.map(({ name }) => name)).toEqual(['Last one', 'Source 7'])
    expect(leftOut).toHaveLength(149)
    expect(reads).toEqual([2])
  })

  test('are at most 100, read in parts', async () => {
    const sources = numbered(150)
    const { run, reads } = runWith(sources)
    const { available, leftOut } = await selectSources(
      run,
      sources.map(({ id }) => id),
    )
    expect([available.length, leftOut.length]).toEqual([100, 50])
    expect(Math.max(...reads)).toBe(SOURCES_PER_READ)
  })

  test('have at most 2 MiB of examples, and the others are not read', async () => {
    const example = { text: 'x'.repeat(64_000) }
    const sources = [...numbered(100, example), webhookSource('Last one', example)]
    const { run, reads } = runWith(sources)
    const { available, leftOut } = await selectSources(
      run,
      sources.map(({ id }) => id),
    )
    expect(available[0]?.name).toBe('Last one')
    expect([available.length, leftOut.length]).toEqual([32, 69])
    expect(reads).toEqual([16, 16, 16])
  })

  test('are all of them in the usual case', async () => {
    const { run } = runWith(numbered(20))
    expect(await selectSources(run)).toMatchObject({ available: { length: 20 }, leftOut: [] })
  })
})
