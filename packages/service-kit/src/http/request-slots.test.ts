import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from '@jest/globals'
import { createTurns } from './request-slots.ts'

test('createTurns gives each key one turn of the event loop at a time, in order, and keys do not wait for each other', async () => {
  const takeTurn = createTurns()
  let turn = 0
  const taken: string[] = []
  const done = Promise.all(
    ['a', 'a', 'b', 'a'].map(async (key, index) => {
      await takeTurn(key)
      taken.push(`${key}${index} in turn ${turn}`)
    }),
  )
  for (; taken.length < 4; turn += 1) await nextTurn()
  await done
  const turnsOf = (key: string) => taken.filter((text) => text.startsWith(key)).map((text) => text.split(' ').at(-1))
  expect(new Set(turnsOf('a')).size).toBe(3)
  expect(taken.filter((text) => text.startsWith('a')).map((text) => text.slice(0, 2))).toEqual(['a0', 'a1', 'a3'])
  expect(turnsOf('b')).toEqual(turnsOf('a').slice(0, 1))
})
