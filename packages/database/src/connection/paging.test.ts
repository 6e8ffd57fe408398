import { expect, test } from '@jest/globals'
import { readVisible } from './paging.ts'

/** Reads all pages of ten of the numbers to `length`, of which every so many is visible, and says how much it read. */
async function readPages(length: number, step: number) {
  const pages: number[][] = []
  const readCounts: number[] = []
  let after: number | undefined
  do {
    let readCount = 0
    const read = async (position = 0, count: number) => {
      readCount += count
      const numbers = Array.from({ length: Math.min(count, length - position) }, (_, index) => position + index + 1)
      return await Promise.resolve(numbers.map((number) => ({ number, isVisible: number % step === 0 })))
    }
    const { rows, next } = await readVisible({ limit: 10, after, maxRead: 4_000 }, read, ({ number }) => number)
    pages.push(rows.map(({ number }) => number))
    readCounts.push(readCount)
    after = next
  } while (after !== undefined)
  return { pages, readCounts }
}

test.each([
  [1, 11],
  [3, 55],
  [7, 231],
  [40, 935],
])(
  'pages are full, miss and repeat none when every %ith entry is visible, the first by reading %i',
  async (step, read) => {
    const { pages, readCounts } = await readPages(2_000, step)
    expect(pages.slice(0, -1).filter(({ length }) => length !== 10)).toEqual([])
    expect(pages.flat()).toEqual(Array.from({ length: Math.floor(2_000 / step) }, (_, index) => step * (index + 1)))
    expect(readCounts[0]).toBe(read)
  },
)

test('a page ends early after so many entries, and the next one goes on there', async () => {
  const { pages, readCounts } = await readPages(10_000, 9_000)
  expect(pages.flat()).toEqual([9_000])
  expect(pages[0]).toEqual([])
  expect(Math.max(...readCounts)).toBeLessThan(5_000)
})
