import { describe, expect, test } from '@jest/globals'
import { withDeadline } from './deadline.ts'

describe('withDeadline', () => {
  test('gives what the work gives', async () => {
    expect(await withDeadline(Promise.resolve('done'), 60_000, 'Work')).toBe('done')
    await expect(withDeadline(Promise.reject(new Error('broken')), 60_000, 'Work')).rejects.toThrow('broken')
  })

  test('ends with an error that names the work, and bears that the work fails later', async () => {
    const { promise: work, reject } = Promise.withResolvers<never>()
    await expect(withDeadline(work, 1, 'Work')).rejects.toThrow('Work took longer than 1 ms')
    // Unhandled, it would end the process.
    reject(new Error('too late'))
    await new Promise((resume) => setImmediate(resume))
  })
})
