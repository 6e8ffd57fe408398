import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { runAttack } from './run-attack.ts'
import { type AttackTarget, startAttackTarget } from './target.ts'
import { ATTACKS } from './trial.ts'

let target: AttackTarget
beforeAll(async () => {
  target = await startAttackTarget()
}, 120_000)
afterAll(() => target.close())

/** Attacks of the API, the application and the runs that end within seconds. The last one ends the runner. */
const FAST = ['app-large-edits', 'app-cut-bodies', 'stored-example-list', 'malformed-http', 'stored-null-fields']

test.each(FAST)(
  '%s ends no process, and takes no response or payload from another organization',
  async (name) => {
    const attack = ATTACKS.find((each) => each.name === name)!
    const { violations } = await runAttack(target, attack, { seconds: 0.5, loadMs: 100 })
    expect(violations).toEqual([])
  },
  60_000,
)
