import { describe, expect, test } from '@jest/globals'
import { openJournal } from './journal.ts'

const note = (text: string) => ({ kind: 'note' as const, data: { code: 'test', text } })

/** A journal that has two steps already, and the positions of the writes to it. */
function createJournal(write: () => Promise<void> = async () => {}) {
  const positions: number[] = []
  const steps = [0, 1].map((position) => ({ ...note('known'), position, createdAt: new Date() }))
  const journal = openJournal({
    stored: {
      readSteps: async () => steps,
      appendSteps(position) {
        positions.push(position)
        return write()
      },
    },
  })
  return { journal, positions }
}

describe('the journal of a run', () => {
  test('appends after the steps that were read, each write after the one before', async () => {
    const { journal, positions } = createJournal()
    expect(await journal.readSteps()).toHaveLength(2)
    await journal.append([note('three'), note('four')])
    await journal.appendNote('test', 'five')
    expect(positions).toEqual([2, 4])
  })

  test('leaves no gap where a write failed', async () => {
    let writes = 0
    const { journal, positions } = createJournal(async () => {
      if (++writes === 1) throw new Error('cannot be stored')
    })
    await expect(journal.append([note('bad')])).rejects.toThrow('cannot be stored')
    await journal.append([note('good')])
    expect(positions).toEqual([0, 0])
  })
})
