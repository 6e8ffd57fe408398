import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals'
import { type RepeatedTask, type RepeatOptions, repeat } from './repeat.ts'

const warn = jest.fn()
const logger = { warn }
let task: RepeatedTask | undefined

function start(run: RepeatOptions['run'], options: Partial<RepeatOptions> = {}): RepeatedTask {
  return (task = repeat({ name: 'count', intervalMs: 1_000, logger, run, ...options }))
}

beforeEach(() => {
  jest.useFakeTimers()
  warn.mockReset()
})
afterEach(async () => {
  await task?.stop()
  jest.useRealTimers()
})

describe('repeat', () => {
  test('runs at once, and again an interval after each run has ended', async () => {
    let end = Promise.withResolvers<void>()
    const run = jest.fn(() => end.promise)
    start(run)
    expect(run).toHaveBeenCalledTimes(1)
    await jest.advanceTimersByTimeAsync(5_000)
    expect(run).toHaveBeenCalledTimes(1)
    end.resolve()
    await jest.advanceTimersByTimeAsync(999)
    expect(run).toHaveBeenCalledTimes(1)
    end = Promise.withResolvers()
    end.resolve()
    await jest.advanceTimersByTimeAsync(1)
    expect(run).toHaveBeenCalledTimes(2)
  })

  test('waits for the first delay when one is given', async () => {
    const run = jest.fn(async () => {})
    start(run, { firstDelayMs: 300 })
    await jest.advanceTimersByTimeAsync(299)
    expect(run).not.toHaveBeenCalled()
    await jest.advanceTimersByTimeAsync(1)
    expect(run).toHaveBeenCalledTimes(1)
  })

  test('logs a run that rejects, and retries it after the retry delay', async () => {
    const run = jest.fn(async () => Promise.reject(new Error('no database')))
    start(run, { retryMs: 100 })
    await jest.advanceTimersByTimeAsync(100)
    expect(run).toHaveBeenCalledTimes(2)
    expect(warn).toHaveBeenCalledWith(
      { task: 'count', error: expect.objectContaining({ message: 'no database' }) as unknown },
      'task.failed',
    )
  })

  test('runs when it is triggered, and once more when it is triggered during a run', async () => {
    const end = Promise.withResolvers<void>()
    const run = jest.fn(async () => {})
    const counting = start(run)
    await jest.advanceTimersByTimeAsync(0)
    run.mockImplementationOnce(() => end.promise)
    counting.trigger()
    await jest.advanceTimersByTimeAsync(0)
    expect(run).toHaveBeenCalledTimes(2)
    counting.trigger()
    counting.trigger()
    end.resolve()
    await jest.advanceTimersByTimeAsync(0)
    expect(run).toHaveBeenCalledTimes(3)
  })

  test('stops by aborting the signal, waiting for the run under way, and starting no other', async () => {
    const end = Promise.withResolvers<void>()
    const run = jest.fn((_signal: AbortSignal) => end.promise)
    const counting = start(run)
    let isStopped = false
    const stopped = counting.stop().then(() => (isStopped = true))
    await jest.advanceTimersByTimeAsync(5_000)
    expect(run.mock.calls[0]?.[0].aborted).toBe(true)
    expect(isStopped).toBe(false)
    end.resolve()
    await stopped
    await jest.advanceTimersByTimeAsync(5_000)
    expect(run).toHaveBeenCalledTimes(1)
  })
})
