import { describe, expect, test } from '@jest/globals'
import { collectWords, makeFilter } from './search-words.ts'

/** The words of the text, their filter, and how often other work had its turn meanwhile. */
async function collect(text: string) {
  const words = new Set<string>()
  let [turns, isDone] = [0, false]
  const count = () => {
    turns += 1
    if (!isDone) setImmediate(count)
  }
  setImmediate(count)
  await collectWords(text, words)
  isDone = true
  return { words, filter: makeFilter(words), turns }
}

describe('The words of a long text', () => {
  test('are collected in turns with other work', async () => {
    const { words, turns } = await collect('a b '.repeat(20_000))
    expect([...words]).toEqual(['a', 'b'])
    expect(turns).toBeGreaterThan(10)
  })

  test('are given up when they are many: the filter says that it may have any', async () => {
    const { words, filter } = await collect(Array.from({ length: 60_000 }, (_, n) => n.toString(36)).join(' '))
    expect(words.size).toBeLessThan(15_000)
    expect(filter).toEqual(Buffer.of(0xff))
  })
})
