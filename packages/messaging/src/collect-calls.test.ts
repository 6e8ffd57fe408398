import { afterEach, beforeEach, expect, jest, test } from '@jest/globals'
import { collectCalls } from './collect-calls.ts'

beforeEach(() => void jest.useFakeTimers())
afterEach(() => void jest.useRealTimers())

test('makes calls together: when there are enough, after a while, and when it is asked to, each once', () => {
  const made: number[] = []
  const calls = collectCalls(3, 20)
  const add = (...numbers: number[]) => numbers.forEach((number) => calls.add(() => made.push(number)))
  add(1, 2)
  expect(made).toEqual([])
  add(3)
  expect(made).toEqual([1, 2, 3])
  add(4)
  jest.advanceTimersByTime(19)
  expect(made).toHaveLength(3)
  jest.advanceTimersByTime(1)
  expect(made).toEqual([1, 2, 3, 4])
  add(5)
  calls.makeAll()
  jest.advanceTimersByTime(20)
  expect(made).toEqual([1, 2, 3, 4, 5])
})
