import { type IncomingMessage, ServerResponse } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from '@jest/globals'
import { Registry } from '../metrics.ts'
import { responseState } from './response-state.ts'
import { createRequestSlots } from './request-slots.ts'

test('the requests of one organization take their turns together, and so are the bytes counted that it does not read', async () => {
  const limits = { total: 9, perKey: 9, metrics: new Registry() }
  const slots = createRequestSlots<string>({ ...limits, keyOf: (apiKey) => apiKey.slice(0, 1) })
  let turn = 0
  const turns: number[] = []
  const read = async (waitForTurn: () => Promise<void>): Promise<void> => {
    await waitForTurn()
    turns.push(turn)
  }
  for (const apiKey of ['a1', 'a2', 'a3'])
    void slots.whileReading(new ServerResponse({ method: 'PUT' } as IncomingMessage), apiKey, read)
  for (; turns.length < 3; turn += 1) await nextTurn()
  expect(new Set(turns).size).toBe(3)
  const res = new ServerResponse({ method: 'GET' } as IncomingMessage)
  void slots.whileAnswering(res, 'a1', () => {})
  expect(responseState(res).key).toBe('a')
})

test('two organizations that take all slots they may leave some to others', async () => {
  const slots = createRequestSlots<string>({ total: 8, perKey: 4, keyOf: (name) => name, metrics: new Registry() })
  /** Begins to read the bodies of five requests, which do not arrive, and returns of how many. */
  const hold = async (name: string): Promise<number> => {
    let count = 0
    const read = (): Promise<void> => {
      count += 1
      return new Promise(() => {})
    }
    for (let n = 0; n < 5; n += 1) {
      slots.whileReading(new ServerResponse({ method: 'PUT' } as IncomingMessage), name, read).catch(() => {})
    }
    await nextTurn()
    return count
  }
  expect([await hold('a'), await hold('b'), await hold('c')]).toEqual([4, 2, 1])
})

test('where many have taken all slots for bodies, the one with the most gives way, and no further than to the same number', async () => {
  const slots = createRequestSlots<string>({ total: 8, perKey: 4, keyOf: (name) => name, metrics: new Registry() })
  const refused: string[] = []
  const begin = async (name: string, read: () => Promise<void> = () => new Promise(() => {})): Promise<void> =>
    await slots
      .whileReading(new ServerResponse({ method: 'PUT' } as IncomingMessage), name, read)
      .catch(({ message }: Error) => void refused.push(`${name} ${message.includes('took long') ? 'late' : 'at once'}`))
  for (const name of ['a', 'a', 'a', 'a', 'b', 'b', 'c', 'd']) void begin(name)
  await nextTurn()
  expect(refused).toEqual([])
  // As many as arrive: each is read in a moment.
  for (let n = 0; n < 3; n += 1) await begin('e', () => nextTurn())
  expect(refused).toEqual(['a late'])
  void begin('e')
  await nextTurn()
  // The second one of a key would leave none free: two give way.
  await begin('e', () => nextTurn())
  expect(refused).toEqual(['a late', 'a late', 'a late'])
  // The first two find a free slot; the last one has as many as each other.
  for (const name of ['f', 'g', 'h', 'a']) void begin(name)
  await nextTurn()
  expect(refused.slice(3).toSorted()).toEqual(['a at once', 'b late'])
})

test('callers who are not known take no slot of those who are, and share theirs', () => {
  const strangers = { includes: (name: string) => name.startsWith('stranger'), perKey: 1 }
  const limits = { total: 2, perKey: 2, strangers, metrics: new Registry() }
  const slots = createRequestSlots<string>({ ...limits, keyOf: (name) => name })
  const begin = (name: string) =>
    void slots.whileAnswering(new ServerResponse({ method: 'GET' } as IncomingMessage), name, () => {})
  for (const name of ['stranger 1', 'stranger 2']) begin(name)
  expect(() => begin('stranger 3')).toThrow('Too many requests are under way')
  for (const name of ['Ada', 'Ada']) begin(name)
  expect(() => begin('Bo')).toThrow('Too many requests are under way')
})
