import { type Attack, openExpectations, tally } from '../attack.ts'
import type { AttackTarget } from '../attack-target.ts'

/** Names with a common beginning: a naive search compares each of them at each position of a text of 50,000 characters. */
export const sourceNames: Attack = {
  name: 'source-names',
  async prepare(target) {
    for (let length = 1; length <= 200; length += 1) await target.saveSource('a'.repeat(length), { text: 'x' }, false)
  },
  async sendOrdinary(target) {
    for (const name of ['a', 'aa', 'aaa']) await startMany(target, `Send it to "${name}".`)
  },
  async run(target) {
    const { expect, violations } = openExpectations()
    const descriptions = ['a'.repeat(50_000), `${'a'.repeat(200)}b `.repeat(247), 'aa '.repeat(16_000)]
    const ids: string[] = []
    for (const description of descriptions) ids.push(...(await startMany(target, description)))
    const runs = await target.waitForRuns(ids)
    expect(runs.length === 60, `Only ${runs.length} of 60 runs ended within 12 s.`)
    return { summary: `200 sources a, aa, aaa, …; 60 starts: ${tally(runs.map(({ status }) => status))}`, violations }
  },
}

async function startMany(target: AttackTarget, description: string): Promise<string[]> {
  return await target.start(await target.createWorkflow(description), Array<string>(20).fill('text: y'))
}
