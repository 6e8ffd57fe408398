import { describe, expect, test } from '@jest/globals'
import type { LookupForAgent, SourceForAgent } from '@workflow-service/database'
import { webhookSource } from '../../../test/support/in-memory-run.ts'
import type { AgentRun } from '../agent.ts'
import { RunParkedError } from '../../run-errors.ts'
import { SOURCES_PER_READ } from '../read-in-parts.ts'
import { selectSources } from './select-sources.ts'

/** A run that records which sources are read. */
function runWith(
  sources: readonly SourceForAgent[],
  description = 'Send it.',
  rules: string | null = null,
  lookups: readonly LookupForAgent[] = [],
) {
  const reads: number[] = []
  const workflow = { id: 'w', name: 'Orders', description, rulesFileId: rules === null ? null : 'r' }
  const run: Pick<AgentRun, 'workflow' | 'listSources' | 'listLookups' | 'readSources' | 'readFile'> = {
    workflow,
    readFile: async (id) => (id === 'r' && rules !== null ? rules : undefined),
    listLookups: async () => lookups,
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

const idsOf = (sources: readonly SourceForAgent[]) => sources.map(({ id }) => id)

describe('the look-ups that a model can use', () => {
  test('have at most 100 tools, and with those of the sources there are never more than OpenAI takes', async () => {
    const tools = Array.from({ length: 20 }, (_, index) => ({ name: `t${index}` })) as never as LookupForAgent['tools']
    const seven = Array.from({ length: 7 }, (_, index) => ({ id: `l${index}`, name: `Look-up ${index}`, tools }))
    const sources = numbered(100)
    const named = [...seven, ...sources].map(({ name }) => name).join(', ')
    const { lookups: usable, available, reason } = await selectSources(runWith(sources, named, null, seven).run)
    expect([usable.length, available.length]).toEqual([5, 20])
    expect(reason).toMatch(/at most 100 tools of look-ups: "Look-up 5", "Look-up 6"\.$/)
    const without = await selectSources(runWith([], named, null, seven).run)
    expect(without.reason).toMatch(/^Look-ups without tools/)
  })

  const lookups = ['Customers', 'Prices'].map((name) => ({ id: name, name, tools: [] }))
  const few = ['Order intake', 'Audit log'].map((name) => webhookSource(name, {}))

  test('are those that the description or the rules name, and no others', async () => {
    const rules = 'deliveries:\n  - to: Order intake # Prices\n'
    const cases = [
      ['Find it in customers, send it to Order intake.', null, ['Customers']],
      ['Send it.', rules, ['Prices']],
      ['Send the customer, reprices.', null, []],
    ] as const
    for (const [description, text, expected] of cases) {
      const selected = await selectSources(runWith(few, description, text, lookups).run)
      expect(selected.lookups.map(({ name }) => name)).toEqual(expected)
    }
  })

  test('leave only those webhook sources that the workflow names', async () => {
    const many = [...few, ...numbered(25)]
    for (const sources of [few, many]) {
      const { available, searchable, reason } = await selectSources(
        runWith(sources, 'Find it in Customers, then send it.', null, lookups).run,
        [few[0]!.id],
      )
      expect([available, searchable]).toEqual([[], []])
      expect(reason).toMatch(/^The workflow names a look-up and no webhook source/)
    }
    const both = await selectSources(runWith(few, 'Find it in Customers, send it to Audit log.', null, lookups).run)
    expect(both.available.map(({ name }) => name)).toEqual(['Audit log'])
    expect(both.searchable).toEqual([])
  })

  test('are not those whose name is a part of the name of a webhook source', async () => {
    const sources = [webhookSource('Customers inbox', {})]
    const { lookups: found, available } = await selectSources(
      runWith(sources, 'To Customers inbox.', null, lookups).run,
    )
    expect([found, available.length]).toEqual([[], 1])
  })
})

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
    const { available, searchable } = await selectSources(run, idsOf(sources))
    expect([available.length, searchable.length]).toEqual([100, 50])
    expect(Math.max(...reads)).toBe(SOURCES_PER_READ)
  })

  test('have at most 2 MiB of examples, and the others are not read', async () => {
    const example = { text: 'x'.repeat(64_000) }
    const sources = numbered(101, example)
    const { run, reads } = runWith(sources)
    const { available, searchable } = await selectSources(run, idsOf(sources))
    expect([available.length, searchable.length]).toEqual([32, 69])
    expect(reads).toEqual([16, 16, 16])
  })
})

test('a model gets no tool of a source that the rules did not name when these were deleted since', async () => {
  const { run } = runWith(numbered(3), 'Send it.', 'deliveries:\n  - to: Source 1')
  const selecting = selectSources({ ...run, readFile: async () => undefined })
  await expect(selecting).rejects.toBeInstanceOf(RunParkedError)
})
