import { expect, test } from '@jest/globals'
import { openJournal } from './journal.ts'

const note = (text: string) => ({ kind: 'note' as const, data: { code: 'test', text } })

test('a journal leaves no gap where a write failed, and appends after the steps that were read', async () => {
  const positions: number[] = []
  const steps = [0, 1].map((position) => ({ ...note('known'), position, createdAt: new Date() }))
  const journal = openJournal({
    readSteps: async () => steps,
    async appendSteps(position) {
      if (positions.push(position) === 1) throw new Error('cannot be stored')
    },
  })
  expect(await journal.readSteps()).toHaveLength(2)
  await expect(journal.append([note('bad')])).rejects.toThrow('cannot be stored')
  await journal.append([note('three'), note('four')])
  await journal.appendNote('attempt_failed', 'five')
  expect(positions).toEqual([2, 2, 4])
})
