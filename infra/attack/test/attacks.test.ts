import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { type AttackTarget, startAttackTarget } from '../src/attack-target.ts'
import { largestExample, storedExampleList, storedTextFields, textFields } from '../src/attacks/example-bodies.ts'
import { contentType, malformedHttp, unknownFields } from '../src/attacks/http-requests.ts'
import { sourceNames } from '../src/attacks/source-names.ts'
import { runAttack } from '../src/run-attack.ts'

let target: AttackTarget
beforeAll(async () => {
  target = await startAttackTarget()
}, 60_000)
afterAll(() => target.close())

test.each([
  storedExampleList,
  largestExample,
  textFields,
  sourceNames,
  contentType,
  unknownFields,
  malformedHttp,
  storedTextFields,
])(
  '$name ends no process, and takes no answer or payload from another organization',
  async (attack) => {
    const { violations } = await runAttack(target, attack, { seconds: 1, loadMs: 300 })
    expect(violations).toEqual([])
  },
  60_000,
)
