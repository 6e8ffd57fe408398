import { type Attack, openExpectations, tally } from '../attack.ts'

/** Names with a common beginning: a naive search compares each of them at each position of a text of 50,000 characters. */
export const sourceNames: Attack = {
  name: 'source-names',
  async run(target) {
    const { expect, violations } = openExpectations()
    const names = Array.from({ length: 200 }, (_, n) => 'a'.repeat(n + 1))
    await Promise.all(names.map((name) => target.saveSource(name, { text: 'x' }, false)))
    const descriptions = ['a'.repeat(50_000), `${'a'.repeat(200)}b `.repeat(247), 'aa '.repeat(16_000)]
    const ids: string[] = []
    for (const description of descriptions)
      ids.push(...(await target.start(await target.createWorkflow(description), Array<string>(20).fill('text'))))
    const runs = await target.waitForRuns(ids)
    expect(runs.length === 60, `Only ${runs.length} of 60 runs ended within 12 s.`)
    return { done: `200 sources a, aa, aaa, …; 60 starts: ${tally(runs.map(({ status }) => status))}`, violations }
  },
}
