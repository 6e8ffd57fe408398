import { describe, expect, test } from '@jest/globals'
import { newId, type StepsToAppend } from '@workflow-service/database'
import { LeaseLostError, RunInterruptedError } from './agent/agent.ts'
import { createHeldSessions } from './held-sessions.ts'
import { openJournal } from './journal.ts'

const note = (text: string) => ({ kind: 'note' as const, data: { code: 'test', text } })

function open(answer: () => Promise<boolean>, heldSteps = 0) {
  const held = createHeldSessions(1)
  const lease = { sessionId: newId(), epoch: 3 }
  const session = held.add({ lease, organizationId: newId(), run: undefined, sources: [] })
  const appends: StepsToAppend[] = []
  const append = (given: StepsToAppend) => {
    appends.push(given)
    return answer()
  }
  const steps = Array.from({ length: heldSteps }, (_, position) => ({
    ...note('held'),
    position,
    createdAt: new Date(),
  }))
  return { held, session, appends, journal: openJournal({ session, runId: newId(), steps, store: { append } }) }
}

const away = () => Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })

describe('the journal of a run', () => {
  test('goes on after the steps that it holds, each step at its own place', async () => {
    const { journal, appends } = open(async () => true, 2)
    await journal.append([note('three'), note('four')])
    await journal.append([note('five')])
    expect(appends.map(({ position }) => position)).toEqual([2, 4])
  })

  test('tells that the lease is lost when nothing was written', async () => {
    const { journal } = open(async () => false)
    await expect(journal.append([note('one')])).rejects.toThrow(LeaseLostError)
  })

  test('asks nobody once the lease is known to be lost', async () => {
    const { journal, held, session, appends } = open(async () => true)
    held.lose(session)
    await expect(journal.append([note('one')])).rejects.toThrow(LeaseLostError)
    expect(appends).toEqual([])
  })

  test('writes the same steps at the same place again while the database is away', async () => {
    let calls = 0
    const { journal, appends } = open(async () => {
      if (++calls < 3) throw away()
      return true
    })
    await journal.append([note('one')])
    expect(appends).toHaveLength(3)
    expect(new Set(appends.map(({ position }) => position))).toEqual(new Set([0]))
  })

  test('a write that failed leaves no gap', async () => {
    let calls = 0
    const { journal, appends } = open(async () => {
      if (++calls === 1) throw new Error('cannot be stored')
      return true
    })
    await expect(journal.append([note('bad')])).rejects.toThrow('cannot be stored')
    await journal.append([note('good')])
    expect(appends.map(({ position }) => position)).toEqual([0, 0])
  })

  test('stops waiting for the database when the run is given up', async () => {
    const { journal, held } = open(async () => {
      throw away()
    })
    const appending = journal.append([note('one')])
    held.abortAll()
    await expect(appending).rejects.toThrow(RunInterruptedError)
  })
})
