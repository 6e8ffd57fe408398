import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { runAttack } from './run-attack.ts'
import { type AttackTarget, startAttackTarget } from './target.ts'
import { ATTACKS } from './trial.ts'

let target: AttackTarget
beforeAll(async () => {
  target = await startAttackTarget()
}, 120_000)
afterAll(() => target.close())

/** Attacks that end within seconds on the same services, in this order: the last one ends the runner. */
const FAST = [
  'app-files',
  'app-rules',
  'app-large-edits',
  'app-strangers-wide',
  'app-cut-bodies',
  'stored-example-list',
  'largest-example',
  'null-fields',
  'source-names',
  'content-type',
  'unknown-fields',
  'malformed-http',
  'stored-null-fields',
]

test.each(FAST)(
  '%s ends no process, and takes no response or payload from another organization',
  async (name) => {
    const attack = ATTACKS.find((each) => each.name === name)!
    const { violations } = await runAttack(target, attack, { seconds: 0.5, loadMs: 100 })
    expect(violations).toEqual([])
  },
  60_000,
)
