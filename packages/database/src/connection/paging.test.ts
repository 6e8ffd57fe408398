import { describe, expect, test } from '@jest/globals'
import { readVisible } from './paging.ts'

/**
 * A list of the numbers from 1 to `length`, of which those are visible that `isVisible` selects, and what is read of
 * it.
 */
function listOf(length: number, isVisible: (number: number) => boolean) {
  const list = { readCount: 0, page }
  async function read(position = 0, count: number) {
    list.readCount += count
    const numbers = Array.from({ length: Math.min(count, length - position) }, (_, index) => position + index + 1)
    return await Promise.resolve(numbers.map((number) => ({ number, isVisible: isVisible(number) })))
  }
  async function page(limit: number, after?: number) {
    const { rows, next } = await readVisible({ limit, after, maxRead: 4_000 }, read, ({ number }) => number)
    return { numbers: rows.map(({ number }) => number), next }
  }
  return list
}

describe('readVisible', () => {
  test('reads one entry more than the page where everything is visible', async () => {
    const list = listOf(100, () => true)
    expect(await list.page(3)).toEqual({ numbers: [1, 2, 3], next: 3 })
    expect(list.readCount).toBe(4)
  })

  test.each([1, 3, 7, 40])(
    'fills each page when every %ith entry is visible, and misses and repeats none',
    async (step) => {
      const list = listOf(2_000, (number) => number % step === 0)
      const pages: number[][] = []
      let after: number | undefined
      do {
        const { numbers, next } = await list.page(10, after)
        pages.push(numbers)
        after = next
      } while (after !== undefined)
      expect(pages.slice(0, -1).filter(({ length }) => length !== 10)).toEqual([])
      expect(pages.flat()).toEqual(Array.from({ length: Math.floor(2_000 / step) }, (_, index) => step * (index + 1)))
    },
  )

  test('ends a page early after so many entries, and the next one goes on there', async () => {
    const list = listOf(100_000, (number) => number === 9_000)
    const first = await list.page(10)
    expect(first.numbers).toEqual([])
    expect(list.readCount).toBeLessThan(5_000)
    const second = await list.page(10, first.next)
    expect([...second.numbers, ...(await list.page(10, second.next)).numbers]).toEqual([9_000])
  })

  test('says that nothing follows after the last entry', async () => {
    expect(await listOf(3, () => true).page(3)).toEqual({ numbers: [1, 2, 3], next: undefined })
    expect(await listOf(0, () => true).page(3)).toEqual({ numbers: [], next: undefined })
  })
})
