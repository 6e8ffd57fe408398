import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { type AttackTarget, startAttackTarget } from '../src/attack-target.ts'
import { APPLICATION_ATTACKS } from '../src/attacks/application.ts'
import { largestExample, storedExampleList, storedNullFields, nullFields } from '../src/attacks/example-bodies.ts'
import { contentType, malformedHttp, unknownFields } from '../src/attacks/http-requests.ts'
import { sourceNames } from '../src/attacks/source-names.ts'
import { runAttack } from '../src/run-attack.ts'

let target: AttackTarget
beforeAll(async () => {
  target = await startAttackTarget()
}, 60_000)
afterAll(() => target.close())

const onApplication = new Set(['app-files', 'app-rules', 'app-large-edits', 'app-strangers-wide', 'app-cut-bodies'])

test.each([
  ...APPLICATION_ATTACKS.filter(({ name }) => onApplication.has(name)),
  storedExampleList,
  largestExample,
  nullFields,
  sourceNames,
  contentType,
  unknownFields,
  malformedHttp,
  storedNullFields,
])(
  '$name ends no process, and takes no answer or payload from another organization',
  async (attack) => {
    const { violations } = await runAttack(target, attack, { seconds: 1, loadMs: 300 })
    expect(violations).toEqual([])
  },
  60_000,
)
