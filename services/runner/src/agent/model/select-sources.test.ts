import { describe, expect, test } from '@jest/globals'
import { webhookSource } from '../../../test/support/in-memory-run.ts'
import { type AgentRun, type AgentWebhookSource, SOURCES_PER_READ } from '../agent.ts'
import { selectSources } from './select-sources.ts'

/** A run that records which sources are read. */
function runWith(sources: readonly AgentWebhookSource[], description = 'Send it.', rules: string | null = null) {
  const reads: number[] = []
  const workflow = { id: 'w', name: 'Orders', description, rulesFileId: rules === null ? null : 'r' }
  const run: Pick<AgentRun, 'run' | 'listSources' | 'readSources' | 'readFile'> = {
    run: { workflow } as AgentRun['run'],
    readFile: async (id) => (id === 'r' && rules !== null ? rules : undefined),
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
  const few = ['Order intake', 'Audit log', 'Payroll'].map((name) => webhookSource(name, {}))
  const rules = 'deliveries:\n  - to: audit log\n'
  test.each([
    ['Send it to Order intake.', null, ['Order intake'], "the workflow's description names"],
    ['Send it.', rules, ['Audit log'], 'rules.yaml names'],
    ['To Order intake.', rules, ['Order intake', 'Audit log'], "the workflow's description and rules.yaml names"],
  ])('are only those that the description %j or the rules %j name', async (description, text, names, why) => {
    const { run, reads } = runWith(few, description, text)
    // A search of an earlier attempt, before the description named a source, adds none.
    const { available, searchable, reason } = await selectSources(run, [few[2]!.id])
    expect(available.map(({ name }) => name)).toEqual(names)
    expect(searchable).toEqual([])
    expect(reads).toEqual([names.length])
    expect(reason).toContain(`Tools that send: ${names.map((name) => `"${name}"`).join(', ')}, which ${why}`)
    expect(reason).toContain(`The ${3 - names.length} other webhook sources`)
  })

  test('are all of them if none is named, and the reason says so', async () => {
    const { available, searchable, reason } = await selectSources(runWith(few, 'Send it.', 'deliveries: []').run)
    expect([available.length, searchable.length]).toEqual([3, 0])
    expect(reason).toMatch(/^Neither the workflow's description nor rules.yaml names a webhook source, so all/)
  })

  test('are of many that are not named only those that searches found', async () => {
    const sources = numbered(151)
    const { run, reads } = runWith(sources)
    const { available, searchable, reason } = await selectSources(run, [sources[7]!.id, 'deleted'])
    expect(available.map(({ name }) => name)).toEqual(['Source 7'])
    expect(searchable).toHaveLength(150)
    expect(reads).toEqual([1])
    expect(reason).toContain('the 150 without a tool get one when the model searches for them')
  })

  test('are at most 100, read in parts', async () => {
    const sources = numbered(150)
    const { run, reads } = runWith(sources)
    const { available, searchable } = await selectSources(
      run,
      sources.map(({ id }) => id),
    )
    expect([available.length, searchable.length]).toEqual([100, 50])
    expect(Math.max(...reads)).toBe(SOURCES_PER_READ)
  })

  test('have at most 2 MiB of examples, and the others are not read', async () => {
    const example = { text: 'x'.repeat(64_000) }
    const sources = numbered(101, example)
    const { run, reads } = runWith(sources)
    const { available, searchable } = await selectSources(
      run,
      sources.map(({ id }) => id),
    )
    expect([available.length, searchable.length]).toEqual([32, 69])
    expect(reads).toEqual([16, 16, 16])
  })

  test('are all of them in the usual case', async () => {
    const { run } = runWith(numbered(20))
    expect(await selectSources(run)).toMatchObject({ available: { length: 20 }, searchable: [] })
  })
})
