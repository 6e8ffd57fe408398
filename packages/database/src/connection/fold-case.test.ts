import { describe, expect, test } from '@jest/globals'
import { foldCase } from './fold-case.ts'

describe('foldCase', () => {
  test.each([
    ['STRASSE', 'Straße'],
    ['ẞ', 'ss'],
    ['ſ', 'S'],
    ['ΌΣΟΣ', 'όσος'],
    ['ﬁn', 'FIN'],
    ['ᾳ', 'ΑΙ'],
    ['ꭰ', 'Ꭰ'],
    ['𐐀', '𐐨'],
  ])('finds %s and %s equal', (one, other) => {
    expect(foldCase(one)).toBe(foldCase(other))
  })

  test('folds İ to i with a dot above, in every locale', () => {
    expect(foldCase('İ')).toBe('i\u0307')
  })

  test('does not change the dotless ı', () => {
    expect(foldCase('kıIx')).toBe('kıix')
  })

  test('does not normalize: a combining mark stays a character of its own', () => {
    expect(foldCase('É')).toBe('é')
    expect(foldCase('E\u0301')).toBe('e\u0301')
    expect(foldCase('é')).not.toBe(foldCase('e\u0301'))
  })

  test('folds a letter the same alone and inside a text, so that folding keeps substrings', () => {
    const differing: string[] = []
    for (let codePoint = 1; codePoint <= 0x1_ffff; codePoint += 1) {
      const letter = String.fromCodePoint(codePoint)
      if (letter.toLowerCase() === letter && letter.toUpperCase() === letter) continue
      const folded = foldCase(letter)
      const inside = [foldCase(`a${letter}`) === `a${folded}`, foldCase(`${letter}a`) === `${folded}a`]
      if (inside.includes(false) || foldCase(folded) !== folded) differing.push(codePoint.toString(16))
    }
    expect(differing).toEqual([])
  })
})
